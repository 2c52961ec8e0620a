package web_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// exchanges are handlers, and what their callers send, of which each has an answer that
// net/http's own server gives as well.
var exchanges = map[string]struct {
	method, body string
	header       []string
	handler      http.HandlerFunc
}{
	"nothing":      {handler: func(http.ResponseWriter, *http.Request) {}},
	"text":         {handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>short") }},
	"status alone": {handler: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }},
	"second status": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		w.WriteHeader(http.StatusOK)
	}},
	"error":    {handler: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) }},
	"redirect": {handler: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/x?y", http.StatusFound) }},
	"long": {handler: func(w http.ResponseWriter, _ *http.Request) {
		for range 1000 {
			_, _ = io.WriteString(w, "0123456789")
		}
	}},
	"one large write": {handler: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(strings.Repeat("x", 100_000)))
	}},
	"flushed": {handler: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "one")
		w.(http.Flusher).Flush()
		_, _ = io.WriteString(w, "two")
	}},
	"head flushed": {handler: func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }},
	"HEAD":         {method: "HEAD", handler: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "text") }},
	"HEAD long": {method: "HEAD", handler: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 10_000))
	}},
	"HEAD nothing": {method: "HEAD", handler: func(http.ResponseWriter, *http.Request) {}},
	"HEAD flushed": {method: "HEAD", handler: func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush() }},
	"HEAD length": {method: "HEAD", handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
	}},
	"204": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
		_, err := w.Write([]byte("x"))
		w.Header().Set("X-Err", fmt.Sprint(err))
	}},
	"304": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", `"1"`)
		w.WriteHeader(http.StatusNotModified)
	}},
	"length": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "four")
	}},
	"bad length": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "four")
		_, _ = io.WriteString(w, "text")
	}},
	"fields": {handler: func(w http.ResponseWriter, _ *http.Request) {
		h := w.Header()
		h["Date"], h["Content-Type"] = nil, nil
		h["X-Two"] = []string{"1", "2"}
		h["Connection"], h["Transfer-Encoding"] = []string{"keep-alive"}, []string{"chunked"}
		h["Bad Name"], h["X-Bad"] = []string{"1"}, []string{"a\nb"}
		_, _ = io.WriteString(w, "text")
		h.Set("X-Late", "1")
	}},
	"declared trailers": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum, X-Not-Set, Content-Length")
		_, _ = io.WriteString(w, "text")
		w.Header().Set("X-Sum", "4")
		w.Header().Set("X-Other", "5")
	}},
	"prefixed trailers": {handler: func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "text")
		w.Header().Add(http.TrailerPrefix+"grpc-status", "0")
		w.Header().Add(http.TrailerPrefix+"x-two", "1")
		w.Header().Add(http.TrailerPrefix+"x-two", "2")
	}},
	"trailers alone": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(http.TrailerPrefix+"X-Sum", "0")
	}},
	"early hints": {handler: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</x>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusOK)
	}},
	"request": {
		method: "PUT", body: "body", header: []string{"Cookie", "a=1", "Cookie", "b=2", "X-Two", "1", "X-Two", "2", "Te", "trailers"},
		handler: func(w http.ResponseWriter, r *http.Request) {
			host, _, err := net.SplitHostPort(r.RemoteAddr)
			fmt.Fprintln(w, r.Method, r.Proto, r.ProtoMajor, r.URL, r.RequestURI, strings.Contains(r.Host, "127.0.0.1:"), r.ContentLength, r.TransferEncoding, host, err)
			for _, name := range slices.Sorted(maps.Keys(r.Header)) {
				fmt.Fprintln(w, name, r.Header[name])
			}
			body, err := io.ReadAll(r.Body)
			fmt.Fprintln(w, string(body), err)
			_, err = r.Body.Read(make([]byte, 1))
			fmt.Fprintln(w, err, r.Body.Close())
		},
	},
	"no body": {handler: func(w http.ResponseWriter, r *http.Request) {
		_, err := r.Body.Read(make([]byte, 1))
		fmt.Fprintln(w, r.ContentLength, err)
	}},
	"expected": {method: "POST", body: "body", header: []string{"Expect", "100-continue"}, handler: echo},
	"not wanted": {method: "POST", body: "body", header: []string{"Expect", "100-continue"}, handler: func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusRequestEntityTooLarge)
	}},
	"controller": {handler: func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, http.NewResponseController(w).EnableFullDuplex())
	}},
	"panic": {handler: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	"bad status": {handler: func(w http.ResponseWriter, _ *http.Request) {
		defer func() { w.Header().Set("X-Panic", fmt.Sprint(recover() != nil)) }()
		w.WriteHeader(99)
	}},
}

// Handlers are answered for as net/http's own server on HTTP/2 does it.
func TestSameAsNetHTTP(t *testing.T) {
	table := http.NewServeMux()
	for name, e := range exchanges {
		table.Handle("/"+strings.ReplaceAll(name, " ", "_"), e.handler)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	judge := &http.Server{Handler: table, Protocols: protocols, ReadHeaderTimeout: soon}
	ln := testkit.Listen(t)
	done := make(chan struct{})
	go func() { defer close(done); _ = judge.Serve(ln) }() // ended by Close
	defer func() { judge.Close(); <-done }()
	s, client := newSite(t, table), newClient(t)
	for name, e := range exchanges {
		t.Run(name, func(t *testing.T) {
			path := "/" + strings.ReplaceAll(name, " ", "_") + "?q=1"
			want := rendered(t, client, e.method, "http://"+ln.Addr().String()+path, e.body, e.header)
			testkit.Equal(t, rendered(t, client, e.method, s.url+path, e.body, e.header), want, "what net/http answers")
		})
	}
}

// rendered is an answer as text, with what stands in it of the time and the caller's
// port left out.
func rendered(t *testing.T, c *http.Client, method, url, body string, header []string) string {
	t.Helper()
	var out strings.Builder
	trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, h textproto.MIMEHeader) error {
		fmt.Fprintln(&out, "interim", code, h)
		return nil
	}}
	ctx, cancel := context.WithTimeout(httptrace.WithClientTrace(t.Context(), trace), soon)
	defer cancel()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, url, reader)
	testkit.Must(t, err)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	answer, err := c.Transport.RoundTrip(r)
	if err != nil {
		return fmt.Sprint(out.String(), "reset by INTERNAL_ERROR: ", strings.Contains(err.Error(), "INTERNAL_ERROR"))
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	_, dated := answer.Header["Date"]
	answer.Header.Del("Date")
	fmt.Fprintln(&out, answer.StatusCode, "dated", dated, "length", answer.ContentLength, "error", err)
	for _, name := range slices.Sorted(maps.Keys(answer.Header)) {
		fmt.Fprintf(&out, "%s: %q\n", name, answer.Header[name])
	}
	fmt.Fprintf(&out, "%d bytes: %.500q\n%v\n", len(text), text, answer.Trailer)
	return out.String()
}
