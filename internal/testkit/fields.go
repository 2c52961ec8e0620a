package testkit

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

// Message is what a header list is the head of, or the end.
type Message uint8

// The messages, as h2 numbers them.
const (
	Request Message = iota
	Response
	Trailers
)

// HostDiffers reports whether a request has two hosts, or another than :authority.
func HostDiffers(fields []hpack.HeaderField) bool {
	authority, host, hosts := "", "", 0
	for _, f := range fields {
		switch f.Name {
		case ":authority":
			authority = normal(f.Value)
		case "host":
			host, hosts = normal(f.Value), hosts+1
		}
	}
	if hosts == 0 || authority == "" && hosts == 1 {
		return false
	}
	port, longer := strings.CutPrefix(host, authority)
	if !longer {
		port, longer = strings.CutPrefix(authority, host)
	}
	usual := slices.Contains([]string{"", ":", ":80", ":443"}, port)
	return hosts > 1 || !longer || !usual || !authorityForm.MatchString(host)
}

// normal maps the letters of ASCII alone.
func normal(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}

// isBinary reports whether the value of a field is base64, or a list of such values.
func isBinary(text string) bool {
	values := strings.Split(text, ",")
	for _, value := range values {
		if len(values) > 1 {
			value = strings.Trim(value, " \t")
		}
		value = strings.TrimSuffix(strings.TrimSuffix(value, "="), "=")
		if _, err := base64.RawStdEncoding.Strict().DecodeString(value); err != nil {
			return false
		}
	}
	return !strings.ContainsAny(text, "\r\n") // which that decoder passes over
}

// FieldFault is the rules of RFC 9113, section 8, written down a second time and with no
// regard to cost. It returns what is wrong with a header list, or nothing. If binary,
// fields whose names end in -bin have to hold that.
func FieldFault(of Message, fields []hpack.HeaderField, binary bool) string {
	pseudo := make(map[string]string)
	regular, lengths := false, 0
	for _, f := range fields {
		if strings.ContainsAny(f.Value, "\x00\r\n") {
			return "value"
		}
		if of == Request && strings.Trim(f.Value, " \t") != f.Value {
			return "space"
		}
		if !strings.HasPrefix(f.Name, ":") {
			regular = true
			if f.Name == "content-length" {
				lengths++
			}
			if fault := RegularFault(f, binary); fault != "" {
				return fault
			}
			continue
		}
		if _, twice := pseudo[f.Name]; twice || regular {
			return "order of " + f.Name
		}
		pseudo[f.Name] = f.Value
	}
	if lengths > 1 {
		return "content-length twice"
	}
	return pseudoFault(of, pseudo)
}

// RegularFault is that of one field that is no pseudo-header field.
func RegularFault(f hpack.HeaderField, binary bool) string {
	connectionFields := []string{"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"}
	switch {
	case !httpguts.ValidHeaderFieldName(f.Name) || strings.ToLower(f.Name) != f.Name:
		return "name"
	case slices.Contains(connectionFields, f.Name):
		return f.Name
	case f.Name == "te" && f.Value != "trailers":
		return "te"
	case f.Name == "content-length" && (f.Value == "" || strings.Trim(f.Value, "0123456789") != ""):
		return "content-length"
	case binary && strings.HasSuffix(f.Name, "-bin") && !isBinary(f.Value):
		return "base64"
	}
	return ""
}

// The grammar of RFC 9113, 8.3.1, and RFC 3986, and in paths what browsers add.
var (
	schemeForm    = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`)
	pathForm      = regexp.MustCompile("^(/[A-Za-z0-9._~!$&'()*+,;=%:@/?{}|^`\\\\\\[\\]-]*|\\*)$")
	authorityForm = regexp.MustCompile(`^(\[[A-Za-z0-9._~!$&'()*+,;=%:[-]*\]|[A-Za-z0-9._~!$&'()*+,;=%-]*)(:[0-9]*)?$`)
)

func pseudoFault(of Message, pseudo map[string]string) string {
	var want []string
	switch {
	case of == Response:
		want = []string{":status"}
		status := pseudo[":status"]
		if len(status) != 3 || status < "100" || status > "999" || strings.Trim(status, "0123456789") != "" {
			return "status"
		}
	case of == Request && pseudo[":method"] == "CONNECT":
		want = []string{":method", ":authority"}
		if !authorityForm.MatchString(pseudo[":authority"]) {
			return "authority"
		}
	case of == Request:
		want = []string{":method", ":scheme", ":path"}
		if !httpguts.ValidHeaderFieldName(pseudo[":method"]) || !schemeForm.MatchString(pseudo[":scheme"]) || !pathForm.MatchString(pseudo[":path"]) ||
			!authorityForm.MatchString(pseudo[":authority"]) || pseudo[":path"] == "*" && pseudo[":method"] != "OPTIONS" {
			return "request line"
		}
		delete(pseudo, ":authority")
	}
	if len(pseudo) != len(want) {
		return fmt.Sprintf("%d pseudo-header fields", len(pseudo))
	}
	for _, name := range want {
		if _, ok := pseudo[name]; !ok {
			return "no " + name
		}
	}
	return ""
}
