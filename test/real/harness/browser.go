package harness

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Browser returns the path of one that runs without a screen.
func Browser(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"chromium", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no chromium: run 'scripts/install-deps.sh workers' first")
	return ""
}

// Site is a page at Origin, which tells by POST to /said what comes of it.
type Site struct {
	Origin string

	t    testing.TB
	said chan string
}

// NewSite serves a page, a format for an address that is known when it is shown.
func NewSite(t testing.TB, page string, address func() string, cookies ...*http.Cookie) *Site {
	t.Helper()
	pages := http.NewServeMux()
	pages.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		for _, cookie := range cookies {
			http.SetCookie(w, cookie)
		}
		fmt.Fprintf(w, page, address())
	})
	return SiteOf(t, pages)
}

// SiteOf is NewSite of several pages.
func SiteOf(t testing.TB, pages *http.ServeMux) *Site {
	t.Helper()
	s := &Site{t: t, said: make(chan string, 100)}
	pages.HandleFunc("POST /said", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		s.said <- string(text)
	})
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	s.Origin = server.URL
	return s
}

// Show has a browser show the page. Its home may be prepared; its profile is browser there.
func (s *Site) Show(home string) {
	s.t.Helper()
	// The page is ours: the browser may do without its sandbox, which root has not.
	StartProcess(s.t, []string{"HOME=" + home}, Browser(s.t), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--ignore-certificate-errors", "--remote-debugging-port=0", "--user-data-dir="+filepath.Join(home, "browser"), s.Origin)
}

// WantSaid fails the test unless the page says these texts, in this order.
func (s *Site) WantSaid(want ...string) {
	s.t.Helper()
	for _, text := range want {
		got := testkit.Take(s.t, s.said, Patience, "the page does not say %s", text)
		testkit.Need(s.t, got == text, "the page says %s, want %s", got, text)
	}
}
