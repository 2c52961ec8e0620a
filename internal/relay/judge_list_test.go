package relay

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

func contentLength(fields []hpack.HeaderField) int64 {
	for _, f := range fields {
		if n, err := strconv.ParseInt(f.Value, 10, 64); f.Name == "content-length" && err == nil {
			return n
		}
	}
	return -1
}

// faultOf names the rule of RFC 9113, 8.2 or 8.3 that a header list breaks.
func faultOf(fields []hpack.HeaderField, trailers, request bool) string {
	pseudo, regular := map[string]string{}, false
	for _, f := range fields {
		if strings.HasPrefix(f.Name, ":") {
			if _, twice := pseudo[f.Name]; twice || regular || trailers {
				return "place of " + f.Name
			}
			pseudo[f.Name] = f.Value
		} else {
			regular = true
			if f.Name != strings.ToLower(f.Name) || !httpguts.ValidHeaderFieldName(f.Name) || slices.Contains(hopByHop(), f.Name) {
				return "name " + f.Name
			}
		}
		switch {
		case strings.ContainsAny(f.Value, "\x00\r\n"):
			return "octets in " + f.Name
		case request && strings.Trim(f.Value, " \t") != f.Value:
			return "space around " + f.Name
		case f.Name == "te" && f.Value != "trailers":
			return "te"
		}
	}
	if trailers {
		return ""
	}
	return pseudoFault(pseudo, request)
}

func hopByHop() []string {
	return []string{"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"}
}

func pseudoFault(pseudo map[string]string, request bool) string {
	need := []string{":status"}
	switch {
	case request && pseudo[":method"] == "CONNECT":
		need = []string{":method", ":authority"}
	case request:
		need = []string{":method", ":scheme", ":path"}
		delete(pseudo, ":authority")
	}
	for _, name := range need {
		if pseudo[name] == "" {
			return "no " + name
		}
	}
	if len(pseudo) != len(need) {
		return fmt.Sprint("too many of ", pseudo)
	}
	return ""
}
