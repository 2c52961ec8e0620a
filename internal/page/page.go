// Package page serves the live page of `cabrank page`: what a running cabrank does, as its
// control socket tells it, in a browser on the same machine.
//
// Start from New. The page knows nothing of the process but that socket: it is one file of HTML,
// and requests that go on to the socket if they bring the token.
package page

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"regexp"
	"strings"
	"sync"
	"time"
)

//go:embed page.html
var html string

const (
	// mostBody bounds what an order may say.
	mostBody = 4 << 10
	// headLimit is how long the head of a request may take.
	headLimit = 10 * time.Second
)

// Options are what a Server is made from.
type Options struct {
	Socket   string        // path of the control socket
	Token    string        // that requests bring as Authorization: Bearer
	ReadOnly bool          // no orders are passed on
	Idle     time.Duration // it ends so long after the last viewer has left; 0: never
}

// Server serves the page.
//
// Life: New, Serve.
type Server struct {
	options Options
	onward  *httputil.ReverseProxy
	policy  string // Content-Security-Policy of the page

	// Concurrency: mu guards what follows.
	mu      sync.Mutex
	viewers int // requests that go on
	idle    *time.Timer
}

// New returns a server that has not begun.
func New(o Options) *Server {
	s := &Server{options: o, policy: policyOf(html)}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", o.Socket)
		},
		DisableKeepAlives: true, // of a process that may be replaced
	}
	s.onward = &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "cabrank", "cabrank"
			r.Out.Header = http.Header{}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if long, ok := errors.AsType[*http.MaxBytesError](err); ok {
				http.Error(w, fmt.Sprintf("an order has at most %d bytes", long.Limit), http.StatusRequestEntityTooLarge)
				return
			}
			http.Error(w, "cabrank does not answer: "+err.Error(), http.StatusBadGateway)
		},
	}
	return s
}

// policyOf lets the page have its own style and script, ask its own server, and nothing else.
func policyOf(page string) string {
	hash := func(part string) string {
		text := regexp.MustCompile(`(?s)<` + part + `>(.*?)</` + part + `>`).FindStringSubmatch(page)
		sum := sha256.Sum256([]byte(text[1]))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; style-src " +
		hash("style") + "; script-src " + hash("script")
}

// Serve answers on the listener until ctx ends, or nobody has looked for as long as Idle.
//
// Errors: those of the listener.
func (s *Server) Serve(ctx context.Context, on net.Listener) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	if s.options.Idle > 0 {
		s.mu.Lock()
		s.idle = time.AfterFunc(s.options.Idle, end)
		s.mu.Unlock()
	}
	server := &http.Server{Handler: s.routes(), ReadHeaderTimeout: headLimit}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // its viewers see it go
	err := server.Serve(on)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", s.page)
	for _, what := range []string{"status", "live", "events"} {
		mux.HandleFunc("GET /v1/"+what, s.pass)
	}
	for _, order := range []string{"restart", "scale", "drain", "reload"} {
		mux.HandleFunc("POST /v1/"+order, s.pass)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := foreign(r); why != "" {
			http.Error(w, why, http.StatusForbidden)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		mux.ServeHTTP(w, r)
	})
}

// foreign tells what speaks against a request: a page of another site may have a name that leads
// here (DNS rebinding), or ask from there.
func foreign(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	switch host {
	case "localhost", "127.0.0.1", "::1", "[::1]":
	default:
		return fmt.Sprintf("the host is %.80q: only localhost, 127.0.0.1 and [::1] are served", r.Host)
	}
	if origin := r.Header.Get("Origin"); origin != "" && origin != "http://"+r.Host {
		return fmt.Sprintf("the origin is %.80q: only the page's own is served", origin)
	}
	return ""
}

func (s *Server) page(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", s.policy)
	_, _ = w.Write([]byte(html)) // a viewer that has left needs none
}

// pass asks the control socket, for requests that bring the token.
func (s *Server) pass(w http.ResponseWriter, r *http.Request) {
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !bearer || subtle.ConstantTimeCompare([]byte(token), []byte(s.options.Token)) != 1 {
		http.Error(w, "the token is missing or another one: open the address that cabrank page has printed", http.StatusUnauthorized)
		return
	}
	if s.options.ReadOnly && r.Method == http.MethodPost {
		http.Error(w, "this page is read-only: it was started with --read-only", http.StatusForbidden)
		return
	}
	s.look(1)
	defer s.look(-1)
	r.Body = http.MaxBytesReader(w, r.Body, mostBody)
	if s.options.ReadOnly {
		w.Header().Set("X-Read-Only", "1")
	}
	s.onward.ServeHTTP(w, r)
}

// look counts viewers that come and go.
func (s *Server) look(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.viewers += more
	switch {
	case s.idle == nil:
	case s.viewers > 0:
		s.idle.Stop()
	default:
		s.idle.Reset(s.options.Idle)
	}
}
