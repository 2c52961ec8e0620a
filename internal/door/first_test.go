package door

import "testing"

func TestKindOf(t *testing.T) {
	for first, want := range map[string]Kind{
		"":                                 Unknown,
		"GET / HTTP/1.1\r\nHost: x\r\n":    HTTP1,
		"GET / HTTP/1.0\n":                 HTTP1,
		"P":                                HTTP1,
		"POST /a.very.long/path":           HTTP1,
		"PRI * HTTP/1.1\r\n":               HTTP1,
		"PRI * HTTP/2.0\r\n\r\nsm":         Unknown,
		"INVALID CONNECTION PREFACE\r\n":   Unknown,
		"get / http/1.1\r\n":               Unknown,
		"\x16":                             TLS,
		"\x16\x03\x01\x02\x00\x01\x00\n":   TLS,
		"\x00\x01\x02":                     Unknown,
		"\n":                               Unknown,
		"*3\r\n$3\r\nSET\r\n HTTP/1.1\r\n": Unknown,
	} {
		if got := KindOf([]byte(first)); got != want {
			t.Errorf("%q: got %d, want %d", first, got, want)
		}
	}
}
