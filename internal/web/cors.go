package web

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/cabrank/cabrank/internal/door"
)

// preflightTime is for how long, in seconds, a browser remembers what a page may ask for:
// two hours, the most that any of them does.
const preflightTime = "7200"

// isSimple reports whether every page may read a field of an answer. Source: Fetch, "CORS-
// safelisted response-header name".
func isSimple(name string) bool {
	return slices.Contains([]string{"Cache-Control", "Content-Language", "Content-Length", "Content-Type", "Expires", "Last-Modified", "Pragma"}, name)
}

// IsPreflight reports whether a request asks what a page of another host may do.
// Source: Fetch, "CORS-preflight request".
func IsPreflight(r *http.Request) bool {
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != ""
}

// ForPages has pages of some origins and of the own host call a handler: browsers ask before
// they let a page read an answer. A page of elsewhere is answered 403, and makes no call. Who
// is no page sends no origin and is let through.
func ForPages(origins func() door.Origins, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		origin, header := r.Header.Get("Origin"), w.Header()
		header.Add("Vary", "Origin")
		switch one := len(r.Header["Origin"]) <= 1; {
		case one && (origin == "" || door.IsOwnOrigin(origin, r.Host)):
			h.ServeHTTP(w, r)
			return
		case !one || !origins().Has(origin):
			header.Set("Content-Type", textPlain)
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(strangePage)) // a caller that has gone needs no answer
			return
		}
		header.Set("Access-Control-Allow-Origin", origin)
		if IsPreflight(r) {
			preflight(header, r)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h.ServeHTTP(&readable{ResponseWriter: w}, r)
	})
}

// strangePage is what a page is told that may not call.
const strangePage = "cabrank: pages of this origin may not call, see the key web.origins\n"

// preflight says that a page may do what it has asked for.
func preflight(header http.Header, r *http.Request) {
	header.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
	header.Set("Access-Control-Allow-Methods", "GET, POST")
	header.Set("Access-Control-Max-Age", preflightTime)
	var names []string
	for _, list := range r.Header["Access-Control-Request-Headers"] {
		for name := range strings.SplitSeq(list, ",") {
			if name = strings.TrimSpace(name); httpguts.ValidHeaderFieldName(name) {
				names = append(names, name)
			}
		}
	}
	if len(names) > 0 {
		header.Set("Access-Control-Allow-Headers", strings.Join(names, ", "))
	}
}

// readable lets a page read every field of an answer.
type readable struct {
	http.ResponseWriter
	said bool
}

// WriteHeader implements http.ResponseWriter.
func (a *readable) WriteHeader(status int) {
	if !a.said && status >= 200 {
		a.said = true
		a.expose()
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *readable) expose() {
	var names []string
	for name := range a.Header() {
		if !isSimple(name) && !strings.HasPrefix(name, "Access-Control-") && name != "Vary" && name != "Trailer" {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		slices.Sort(names)
		a.Header().Set("Access-Control-Expose-Headers", strings.Join(names, ", "))
	}
}

// Write implements io.Writer.
func (a *readable) Write(p []byte) (int, error) {
	if !a.said {
		a.WriteHeader(http.StatusOK)
	}
	return a.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (a *readable) Unwrap() http.ResponseWriter { return a.ResponseWriter }
