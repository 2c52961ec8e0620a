package config

import (
	"cmp"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Listener is where cabrank listens.
type Listener struct {
	On     bool   // only probes and metrics may be off
	Host   string `kind:"bind"`      // empty: every interface
	Port   int    `range:"0..65535"` // 0: the system chooses
	Shared bool   // with other processes (SO_REUSEPORT); only the port of the calls may be
	Path   string `kind:"page"` // of the page; only metrics have one
}

// Addr returns the address to listen on, for net.Listen.
func (l Listener) Addr() string { return joinHostPort(l.Host, l.Port) }

func joinHostPort(host string, port int) string {
	return net.JoinHostPort(host, strconv.Itoa(port))
}

const (
	off         = "off"      // the word for a listener that is not there
	sharedMark  = " shared"  // stands behind an address at which others may listen, too
	metricsPath = "/metrics" // where the page is if its address has no path
)

// String returns it as it is written.
func (l Listener) String() string {
	switch {
	case !l.On:
		return off
	case l.Shared:
		return l.Addr() + sharedMark
	case l.Path != metricsPath:
		return l.Addr() + l.Path
	}
	return l.Addr()
}

// listenAt is the kind of Listener fields that may be off, shared, or have a path, as named.
func listenAt(legal string, named ...string) kind {
	may := func(what string) bool { return slices.Contains(named, what) }
	return kind{legal: legal, read: func(into any, text string) (err error) {
		l := into.(*Listener)
		if text == off && may(off) {
			l.On = false
			return nil
		}
		l.On = true
		if may(sharedMark) {
			text, l.Shared = strings.CutSuffix(text, sharedMark)
		}
		if may(metricsPath) {
			l.Path = cmp.Or(l.Path, metricsPath)
			if at := strings.IndexByte(text, '/'); at >= 0 {
				text, l.Path = text[:at], text[at:]
			}
			if _, err := cleanPath(l.Path); err != nil {
				return err
			}
		}
		l.Host, l.Port, err = splitHostPort(text)
		return err
	}}
}
