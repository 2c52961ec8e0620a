package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/testkit"
)

// pagesOf returns what serves pages of an origin, of all hosts below another one, and of null,
// which is none; and how often it was asked.
func pagesOf(answer http.HandlerFunc) (h http.Handler, asked *int) {
	asked = new(int)
	origins := door.Origins{"https://shop.example", "https://*.pages.example", "null"}
	return ForPages(func() door.Origins { return origins }, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked++
		answer(w, r)
	})), asked
}

// askPage asks as a page does, at cabrank.example.
func askPage(h http.Handler, method string, origins []string, fields ...string) *http.Response {
	r := httptest.NewRequest(method, "http://cabrank.example/a.B/C", nil)
	if len(origins) > 0 {
		r.Header["Origin"] = origins
	}
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// Pages of listed origins and of the own host call, and who is no page; for all others no
// call is made. Nobody may send cookies by it.
func TestWhichPagesCall(t *testing.T) {
	type names = []string
	for name, c := range map[string]struct {
		origins names
		status  int
		allowed string
	}{
		"no page":              {nil, 200, ""},
		"listed":               {names{"https://shop.example"}, 200, "https://shop.example"},
		"below a domain":       {names{"https://a.b.pages.example"}, 200, "https://a.b.pages.example"},
		"the domain itself":    {names{"https://pages.example"}, 403, ""},
		"a longer domain":      {names{"https://evilpages.example"}, 403, ""},
		"another port":         {names{"https://shop.example:8443"}, 403, ""},
		"not over TLS":         {names{"http://shop.example"}, 403, ""},
		"listed, and more":     {names{"https://shop.example.evil.example"}, 403, ""},
		"own host":             {names{"http://cabrank.example"}, 200, ""},
		"own host by its port": {names{"https://cabrank.example:443"}, 200, ""},
		"own host, other port": {names{"http://cabrank.example:8080"}, 403, ""},
		"elsewhere":            {names{"https://evil.example"}, 403, ""},
		"null":                 {names{"null"}, 403, ""},
		"two":                  {names{"https://shop.example", "https://shop.example"}, 403, ""},
		"two, one of the host": {names{"http://cabrank.example", "https://evil.example"}, 403, ""},
		"two, one is empty":    {names{"", "https://evil.example"}, 403, ""},
		"two in one":           {names{"https://shop.example, https://evil.example"}, 403, ""},
	} {
		for _, method := range []string{http.MethodPost, http.MethodOptions} {
			h, asked := pagesOf(func(http.ResponseWriter, *http.Request) {})
			got := askPage(h, method, c.origins)
			made := 0
			if c.status == 200 {
				made = 1
			}
			testkit.Want(t, got.StatusCode == c.status && *asked == made && got.Header.Get("Access-Control-Allow-Origin") == c.allowed,
				"%s, %s: %d, %d calls, %v", name, method, got.StatusCode, *asked, got.Header)
			testkit.Want(t, got.Header.Get("Vary") == "Origin" && got.Header.Get("Access-Control-Allow-Credentials") == "",
				"%s, %s: %v", name, method, got.Header)
			text, _ := io.ReadAll(got.Body)
			testkit.Want(t, c.status != 403 || strings.Contains(string(text), "web.origins"), "%s, %s: %q", name, method, text)
		}
	}
}

// A browser that asks first is answered without a call, and remembers it for two hours.
func TestPreflight(t *testing.T) {
	h, asked := pagesOf(func(http.ResponseWriter, *http.Request) {})
	const method, names = "Access-Control-Request-Method", "Access-Control-Request-Headers"
	for name, c := range map[string]struct {
		origin  string
		fields  []string
		status  int
		allowed string
	}{
		"names":              {"https://shop.example", []string{names, "content-type, x-grpc-web,authorization", names, "x-user-agent"}, 204, "content-type, x-grpc-web, authorization, x-user-agent"},
		"names that are bad": {"https://shop.example", []string{names, "x-a, x b, , x\xc3\xa4, x-c"}, 204, "x-a, x-c"},
		"no names":           {"https://shop.example", nil, 204, ""},
		"elsewhere":          {"https://evil.example", []string{names, "content-type"}, 403, ""},
	} {
		got := askPage(h, http.MethodOptions, []string{c.origin}, append([]string{method, "POST"}, c.fields...)...)
		testkit.Want(t, *asked == 0 && got.StatusCode == c.status && got.Header.Get("Access-Control-Allow-Headers") == c.allowed,
			"%s: %d, %d calls, %v", name, got.StatusCode, *asked, got.Header)
		want := []string{"Origin", "Access-Control-Request-Method, Access-Control-Request-Headers"}
		if c.status == 204 && (got.Header.Get("Access-Control-Max-Age") != "7200" || got.Header.Get("Access-Control-Allow-Methods") != "GET, POST" || !slices.Equal(got.Header["Vary"], want)) {
			t.Errorf("%s: %v", name, got.Header)
		}
	}
	for name, r := range map[string]*http.Request{
		"no method asked for": httptest.NewRequest(http.MethodOptions, "/", nil),
		"a call":              httptest.NewRequest(http.MethodPost, "/", nil),
	} {
		if r.Header.Set("Origin", "https://shop.example"); IsPreflight(r) {
			t.Errorf("%s is taken for a preflight", name)
		}
	}
}

// A page may read each field of an answer from elsewhere, once those are known.
func TestPagesReadEveryField(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"by a head": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-A", "1")
			w.Header().Set("Grpc-Status", "0")
			w.WriteHeader(http.StatusOK)
			w.Header().Set("X-Late", "1")
			w.WriteHeader(http.StatusOK)
		},
		"by a body": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "no-store")
			w.Header().Set("X-A", "1")
			w.Header().Set("Grpc-Status", "0")
			_, _ = io.WriteString(w, "text")
			w.Header().Set("X-Late", "1")
			_, _ = io.WriteString(w, "more")
			_ = http.NewResponseController(w).Flush()
		},
	} {
		h, _ := pagesOf(answer)
		if got := askPage(h, http.MethodPost, []string{"https://shop.example"}).Header.Get("Access-Control-Expose-Headers"); got != "Grpc-Status, X-A" {
			t.Errorf("%s: %q", name, got)
		}
		testkit.Equal(t, askPage(h, http.MethodPost, []string{"http://cabrank.example"}).Header.Get("Access-Control-Expose-Headers"), "",
			"%s, of the own host", name)
	}
}
