package trace

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

const prefix = "OTEL_EXPORTER_OTLP_"

func TestEndpoint(t *testing.T) {
	const form = "give a URL such as http://127.0.0.1:4318, with no user in it"
	for _, tc := range []struct {
		key, all, traces string
		want             string // the URL, or how the line begins
	}{
		{"http://127.0.0.1:4318", "", "", "http://127.0.0.1:4318/v1/traces"},
		{"http://127.0.0.1:4318/", "", "", "http://127.0.0.1:4318/v1/traces"},
		{"https://otel.example/in/here", "", "", "https://otel.example/in/here"},
		{"http://a:1", "http://b:2", "http://c:3", "http://a:1/v1/traces"}, // variables do not count
		{"env", "http://b:2", "", "http://b:2/v1/traces"},
		{"env", "http://b:2/", "", "http://b:2/v1/traces"},
		{"env", "https://b:2/in/here?key=1", "", "https://b:2/in/here/v1/traces?key=1"},
		{"env", "http://b:2", "http://c:3", "http://c:3"},
		{"env", "http://b:2", "http://c:3/spans/", "http://c:3/spans/"},
		{"env", "", "", prefix + "ENDPOINT: " + form},
		{"env", "b:2", "", prefix + "ENDPOINT: " + form},
		{"env", "", "ftp://c", prefix + "TRACES_ENDPOINT: " + form},
		{"127.0.0.1:4318", "", "", "tracing.endpoint: " + form},
		{"http://", "", "", "tracing.endpoint: " + form},
		{"grpc://a:4317", "", "", "tracing.endpoint: " + form},
		{"http://me:hush@a:4318", "", "", "tracing.endpoint: " + form},
		{"http://a:%zz", "", "", "tracing.endpoint: " + form},
		{"http://hush\x7f@", "", "", "tracing.endpoint: " + form},
	} {
		o, err := Read(tc.key, variablesOf("ENDPOINT", tc.all, "TRACES_ENDPOINT", tc.traces))
		if strings.HasPrefix(tc.want, "http") {
			testkit.Want(t, err == nil && o.URL.String() == tc.want, "%+v: %v, %v", tc, o.URL, err)
			continue
		}
		testkit.RefusedBy(t, err, tc.want)
	}
}

// variablesOf has variables of the exporter, by the ends of their names.
func variablesOf(texts ...string) func(string) string {
	all := map[string]string{}
	for i := 0; i < len(texts); i += 2 {
		name := texts[i]
		if !strings.HasPrefix(name, "OTEL_") {
			name = prefix + name
		}
		all[name] = texts[i+1]
	}
	return func(name string) string { return all[name] }
}

func TestVariables(t *testing.T) {
	o, err := Read("http://a:1", variablesOf())
	if err != nil || o.Timeout != 10*time.Second || o.Plain || o.TLS != nil || !maps.Equal(o.Resource, map[string]string{"service.name": "cabrank"}) ||
		fmt.Sprint(o.Header) != "map[Content-Encoding:[gzip] Content-Type:[application/x-protobuf] User-Agent:[cabrank]]" {
		t.Errorf("without any: %+v, %v", o, err)
	}
	o, err = Read("http://a:1", variablesOf(
		"TIMEOUT", "1", "TRACES_TIMEOUT", "2500", "COMPRESSION", "gzip", "TRACES_COMPRESSION", "none", "PROTOCOL", "grpc", "TRACES_PROTOCOL", "http/protobuf",
		"HEADERS", "authorization=Bearer%20a%2Cb, x-scope = shop ,", "OTEL_RESOURCE_ATTRIBUTES", "service.name=shop,deployment.environment.name=a%2Cb%3Dc%25",
	))
	if err != nil || o.Timeout != 2500*time.Millisecond || !o.Plain || o.Header.Get("Authorization") != "Bearer a,b" || o.Header.Get("X-Scope") != "shop" ||
		o.Header.Get("Content-Encoding") != "" || !maps.Equal(o.Resource, map[string]string{"service.name": "shop", "deployment.environment.name": "a,b=c%"}) {
		t.Errorf("with many: %+v, %v", o, err)
	}
	o, err = Read("http://a:1", variablesOf("HEADERS", "a=1", "TRACES_HEADERS", "b=2", "OTEL_SERVICE_NAME", "front", "OTEL_RESOURCE_ATTRIBUTES", "service.name=shop"))
	testkit.Want(t, err == nil && o.Resource["service.name"] == "front" && o.Header.Get("A") == "" && o.Header.Get("B") == "2",
		"the more special ones: %+v, %v", o, err)
}

// Whatever is wrong is one line, without what may be a secret.
func TestFaults(t *testing.T) {
	nothing := filepath.Join(t.TempDir(), "nothing.pem")
	for _, tc := range []struct{ name, value, want string }{
		{"TIMEOUT", "10s", prefix + `TIMEOUT: "10s": give milliseconds, such as 10000`},
		{"TRACES_TIMEOUT", "0", prefix + `TRACES_TIMEOUT: "0": give milliseconds, such as 10000`},
		{"TIMEOUT", "99999999999", prefix + `TIMEOUT: "99999999999": give milliseconds, such as 10000`},
		{"PROTOCOL", "grpc", prefix + `PROTOCOL: "grpc": Cabrank sends http/protobuf; set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL to it`},
		{"TRACES_PROTOCOL", "http/json", prefix + `TRACES_PROTOCOL: "http/json": Cabrank sends http/protobuf; set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL to it`},
		{"COMPRESSION", "zstd", prefix + `COMPRESSION: "zstd": give gzip or none`},
		{"CERTIFICATE", nothing, fmt.Sprintf("%sCERTIFICATE: %q: give a file of certificates in PEM", prefix, nothing)},
		{"CERTIFICATE", os.DevNull, prefix + `CERTIFICATE: "/dev/null": give a file of certificates in PEM`},
		{"HEADERS", "a=1,hush", prefix + "HEADERS: entry 2 is no KEY=VALUE, with %2C for a comma in the value"},
		{"TRACES_HEADERS", "=hush", prefix + "TRACES_HEADERS: entry 1 is no KEY=VALUE, with %2C for a comma in the value"},
		{"HEADERS", "a=hush%", prefix + "HEADERS: entry 1 is no KEY=VALUE, with %2C for a comma in the value"},
		{"HEADERS", "a b=hush", prefix + "HEADERS: HTTP has no such name or value: give NAME=VALUE,NAME=VALUE"},
		{"HEADERS", "a=hush%0d%0ab", prefix + "HEADERS: HTTP has no such name or value: give NAME=VALUE,NAME=VALUE"},
		{"OTEL_RESOURCE_ATTRIBUTES", "a=b,c", "OTEL_RESOURCE_ATTRIBUTES: entry 2 is no KEY=VALUE, with %2C for a comma in the value"},
	} {
		_, err := Read("http://a:1", variablesOf(tc.name, tc.value))
		testkit.RefusedBy(t, err, tc.want)
	}
}

// A collector with a certificate of one's own authority gets spans, and the headers; another
// one gets none.
func TestAuthority(t *testing.T) {
	var got testkit.Buffer
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(&got, r.Header.Get("Authorization"))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	testkit.Must(t, os.WriteFile(file, text, 0o600))
	for certificate, exported := range map[string]uint64{file: 1, "": 0} {
		o := options(t, server.URL, io.Discard)
		read, err := Read(server.URL, variablesOf("CERTIFICATE", certificate, "HEADERS", "authorization=secret"))
		testkit.Must(t, err)
		o.TLS, o.Header = read.TLS, read.Header
		tr := New(o)
		record(tr, 0)
		tr.Close(10 * time.Second)
		if n := tr.Exported.Load(); n != exported {
			t.Errorf("with the file %q %d are exported", certificate, n)
		}
	}
	testkit.Want(t, got.String() == "secret\n", "it got %q", got.String())
}
