package web

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
)

const textPlain = "text/plain; charset=utf-8"

// page is what a person sees who opens the port in a browser or by curl. Its verb is
// the address that was asked for.
const page = `Cabrank: this port speaks gRPC, over HTTP/2.

With grpcurl, if the workers offer reflection (else add -proto FILE; over TLS, leave
-plaintext out):

  grpcurl -plaintext %[1]s list
  grpcurl -plaintext -d '{}' %[1]s PACKAGE.SERVICE/METHOD

With curl, likewise (else see the key descriptors; over TLS, with https:// in front):

  curl --json '{}' %[1]s/PACKAGE.SERVICE/METHOD

From code: a channel to %[1]s, without TLS ("insecure", "plaintext") unless tls is set.
`

// IsPage reports whether a request is for the page that ServePage answers with.
func IsPage(method, path string) bool {
	return path == "/" && (method == http.MethodGet || method == http.MethodHead)
}

// ServePage says what the port speaks and how it is called.
func ServePage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", textPlain)
	w.Header().Set("X-Content-Type-Options", "nosniff") // the address is the caller's own word
	text := fmt.Sprintf(page, addressIn(r.Host))
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	_, _ = w.Write([]byte(text)) //nolint:gosec // no markup: text/plain, and addressIn; a caller that has gone needs no answer
}

// addressIn returns the address by which a caller has found the port, in a form that
// can be copied into a shell: the default port of HTTP is added, and what is no
// address is not repeated.
func addressIn(host string) string {
	const unknown, most = "HOST:PORT", 255
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), "80"
	}
	if name == "" || len(name) > most || strings.ContainsFunc(name+port, notInAddress) {
		return unknown
	}
	return net.JoinHostPort(name, port)
}

func notInAddress(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '-', r == ':', r == '_':
		return false
	}
	return true
}
