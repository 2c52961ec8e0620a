//go:build soak

// Package web_test has pages in a browser call workers, with the clients that people use.
package web_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// site has the page, and an origin of its own.
type site struct {
	*httptest.Server

	address string // that the page calls
	said    chan string
}

// described is Work as protoc describes it.
func described(t *testing.T) []byte {
	t.Helper()
	set := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(workpb.File_cabrank_example_v1_work_proto)}}
	text, err := proto.Marshal(set)
	testkit.Must(t, err)
	return text
}

// descriptors is a file with that.
func descriptors(t *testing.T) string {
	t.Helper()
	name := harness.WriteFile(t, "work.pb", described(t))
	return name
}

func newSite(t *testing.T) *site {
	t.Helper()
	page := filepath.Join(harness.Root(t), "test", "real", "web", "page")
	harness.Built(t, filepath.Join(page, "node_modules", "grpc-web", "index.js"), "scripts/install-deps.sh conformance")
	set := described(t)
	s := &site{said: make(chan string, 100)}
	mux := http.NewServeMux()
	mux.Handle("GET /npm/", http.StripPrefix("/npm/", http.FileServer(http.Dir(filepath.Join(page, "node_modules")))))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, filepath.Join(page, "page.html")) })
	mux.HandleFunc("GET /work.pb", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) })
	mux.HandleFunc("GET /address", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s.address) })
	mux.HandleFunc("POST /said", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		s.said <- string(text)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

// show shows the page in a browser that trusts any certificate.
func (s *site) show(t *testing.T, address string) {
	t.Helper()
	s.address = address
	// The page is ours: the browser may do without its sandbox, which root has not.
	harness.StartProcess(t, nil, harness.Browser(t), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--ignore-certificate-errors", "--remote-debugging-port=0", "--user-data-dir="+t.TempDir(), s.URL)
}

func (s *site) wantSaid(t *testing.T, want ...string) {
	t.Helper()
	for _, text := range want {
		select {
		case got := <-s.said:
			if got != text {
				t.Fatalf("the page says %q, want %q", got, text)
			}
		case <-time.After(harness.Patience):
			t.Fatalf("the page does not say %q", text)
		}
	}
}

// A page of a listed origin calls workers in Python and Ruby by the official clients, in clear
// and over TLS; one of another origin calls nobody.
func TestPagesCallWorkers(t *testing.T) {
	for _, lang := range []string{"python", "ruby"} {
		for _, secure := range []bool{false, true} {
			name, scheme := lang, "http://"
			if secure {
				name, scheme = lang+" over TLS", "https://"
			}
			t.Run(name, func(t *testing.T) {
				shop, other := newSite(t), newSite(t)
				flags := []string{"--workers", "1", "--transport", "unix"}
				if secure {
					config, _, _ := harness.WithTLS(t, "")
					flags = append(flags, "--config", config)
				}
				c := harness.StartLangCabrankEnv(t, lang, []string{"CABRANK_WEB_ORIGINS=" + shop.URL, "CABRANK_DESCRIPTORS=" + descriptors(t)}, flags...)
				other.show(t, scheme+c.Addr)
				other.wantSaid(t, "grpc-web: Failed to fetch", "ended by ConnectError: [unknown] Failed to fetch")
				if n := c.Metric("cabrank_calls_total"); n != 0 {
					t.Errorf("%v calls were made", n)
				}
				shop.show(t, scheme+c.Addr)
				for _, client := range []string{"grpc-web", "connect", "json"} {
					shop.wantSaid(t, client+": io 1", client+": count 1,2,3", client+": fail 5 no café", client+": meta 1 2", client+": late 4")
				}
				shop.wantSaid(t, "binary: io 2", "binary: fail 5 none", "text: io 2", "text: fail 5 none", "text: count 1,2,3,4")
				testkit.Eventually(t, harness.Patience, "all calls to be counted", func() bool {
					ended := func(door string) float64 { return c.Metric("cabrank_door_calls_total", "door", door, "code", "OK") }
					return ended("grpc-web") == 6 && ended("connect") == 6
				})
				c.Stop()
			})
		}
	}
}
