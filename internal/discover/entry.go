package discover

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// form is how an upstream is written.
type form uint8

const (
	// fixed: "host:port", "tls:host:port" or "unix:/path", an endpoint by itself.
	fixed form = iota
	// byAddress: "dns:NAME:PORT" or "tls:dns:NAME:PORT", the addresses of a name.
	byAddress
	// byService: "srv:NAME", the targets of a service record.
	byService
)

// entry is one upstream, parsed.
type entry struct {
	text string // as it was written: its identity
	form form
	name string // to look up; empty if fixed
	port uint16 // only byAddress
}

// tlsMark begins an upstream that speaks TLS.
const tlsMark = "tls:"

// endpoint returns the name of the endpoint at a target. An endpoint that speaks TLS has
// to show a certificate for the name that was looked up.
func (e *entry) endpoint(t target) string {
	if strings.HasPrefix(e.text, tlsMark) {
		return tlsMark + t.address.String() + "/" + e.name
	}
	return t.address.String()
}

// parse parses an upstream. Package config refuses bad ones before, with better words.
func parse(text string) (entry, error) {
	if name, found := strings.CutPrefix(text, "srv:"); found {
		if name == "" {
			return entry{}, fmt.Errorf("upstream %q has no name", text)
		}
		return entry{text: text, form: byService, name: name}, nil
	}
	rest, found := strings.CutPrefix(strings.TrimPrefix(text, tlsMark), "dns:")
	if !found {
		if text == "" {
			return entry{}, errors.New("an upstream is empty")
		}
		return entry{text: text}, nil
	}
	at := strings.LastIndexByte(rest, ':')
	if at < 1 {
		return entry{}, fmt.Errorf("upstream %q is not dns:NAME:PORT", text)
	}
	port, err := strconv.ParseUint(rest[at+1:], 10, 16)
	if err != nil || port == 0 {
		return entry{}, fmt.Errorf("upstream %q has no port from 1 to 65535", text)
	}
	return entry{text: text, form: byAddress, name: rest[:at], port: uint16(port)}, nil
}

// split returns the network and the address to dial for an address as it is written.
func split(address string) (network, target string) {
	if path, isUnix := strings.CutPrefix(address, "unix:"); isUnix {
		return "unix", path
	}
	if at, secure := strings.CutPrefix(address, tlsMark); secure {
		return secureNetwork, at
	}
	return "tcp", address
}
