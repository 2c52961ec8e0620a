//go:build soak

// Package web_test has pages in a browser call workers, with the clients that people use.
package web_test

import (
	"io"
	"net/http"
	"path/filepath"
	"testing"

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
	*harness.Site

	address string // that the page calls
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
	return harness.WriteFile(t, "work.pb", described(t))
}

func newSite(t *testing.T) *site {
	t.Helper()
	page := filepath.Join(harness.Root(t), "test", "real", "web", "page")
	harness.Built(t, filepath.Join(page, "node_modules", "grpc-web", "index.js"), "scripts/install-deps.sh conformance")
	set := described(t)
	s := &site{}
	mux := http.NewServeMux()
	mux.Handle("GET /npm/", http.StripPrefix("/npm/", http.FileServer(http.Dir(filepath.Join(page, "node_modules")))))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, filepath.Join(page, "page.html")) })
	mux.HandleFunc("GET /work.pb", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) })
	mux.HandleFunc("GET /address", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, s.address) })
	s.Site = harness.SiteOf(t, mux)
	return s
}

// show shows the page in a browser that trusts any certificate.
func (s *site) show(t *testing.T, address string) {
	t.Helper()
	s.address = address
	s.Show(t.TempDir())
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
				c := harness.StartLangCabrankEnv(t, lang, []string{"CABRANK_WEB_ORIGINS=" + shop.Origin, "CABRANK_DESCRIPTORS=" + descriptors(t)}, flags...)
				other.show(t, scheme+c.Addr)
				other.WantSaid("grpc-web: Failed to fetch", "ended by ConnectError: [unknown] Failed to fetch")
				testkit.Equal(t, c.Metric("cabrank_calls_total"), 0, "calls were made")
				shop.show(t, scheme+c.Addr)
				for _, client := range []string{"grpc-web", "connect", "json"} {
					shop.WantSaid(client+": io 1", client+": count 1,2,3", client+": fail 5 no café", client+": meta 1 2", client+": late 4")
				}
				shop.WantSaid("binary: io 2", "binary: fail 5 none", "text: io 2", "text: fail 5 none", "text: count 1,2,3,4")
				testkit.Eventually(t, harness.Patience, "all calls to be counted", func() bool {
					ended := func(door string) float64 { return c.Metric("cabrank_door_calls_total", "door", door, "code", "OK") }
					return ended("grpc-web") == 6 && ended("connect") == 6
				})
			})
		}
	}
}
