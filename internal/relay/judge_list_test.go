package relay

import (
	"encoding/base64"
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
	pseudo, regular, host := map[string]string{}, false, ""
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
		if f.Name == "host" {
			host = f.Value
		}
		switch {
		case strings.ContainsAny(f.Value, "\x00\r\n"):
			return "octets in " + f.Name
		case request && strings.Trim(f.Value, " \t") != f.Value:
			return "space around " + f.Name
		case request && strings.HasSuffix(f.Name, "-bin") && !isBinary(f.Value):
			return "no base64 in " + f.Name
		case f.Name == "te" && f.Value != "trailers":
			return "te"
		}
	}
	if trailers {
		return ""
	}
	if authority := pseudo[":authority"]; request && host != "" && authority != "" && host != authority {
		return "host"
	}
	return pseudoFault(pseudo, request)
}

// isBinary reports whether a value is base64, with or without padding: one, for some
// workers take no list (R12).
func isBinary(value string) bool {
	_, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(value, "="))
	return err == nil
}

func hopByHop() []string {
	return []string{"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"}
}

func pseudoFault(pseudo map[string]string, request bool) string {
	need := []string{":status"}
	switch {
	case request && pseudo[":method"] == "CONNECT":
		return "CONNECT"
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
