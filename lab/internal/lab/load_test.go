package lab

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// A load by each protocol and codec is answered, and the report says how it called.
func TestLoadByProtocol(t *testing.T) {
	handler := connect.NewUnaryHandler("/a.B/C", func(_ context.Context, r *connect.Request[wrapperspb.StringValue]) (*connect.Response[wrapperspb.StringValue], error) {
		return connect.NewResponse(r.Msg), nil
	})
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "a.proto")
	text := `syntax = "proto3"; package a; import "google/protobuf/wrappers.proto";
		service B { rpc C(google.protobuf.StringValue) returns (google.protobuf.StringValue); }`
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	plan, err := traffic.Options{Callers: 2, Duration: 200 * time.Millisecond}.Plan()
	testkit.Must(t, err)
	for _, protocol := range caller.Protocols() {
		for _, codec := range caller.Codecs() {
			l := Load{Plan: plan, Calls: caller.Calls{Method: "a.B/C", Files: method.Files{Names: []string{file}}, Data: method.Data{Name: "--data", Text: []byte(`"{{.RequestNumber}}"`)}}}
			l.Target = server.Listener.Addr().String()
			l.Way, err = caller.ParseWay(protocol, codec, "")
			testkit.Must(t, err)
			p, err := l.Prepare(t.Context())
			testkit.Must(t, err)
			done, err := p.Run(t.Context(), l.Plan, nil)
			testkit.Must(t, err)
			if n := done.Record.Calls.Answered.Count(); n == 0 || n != done.Record.Due {
				t.Errorf("%s, %s: %d of %d answered, %v", protocol, codec, n, done.Record.Due, done.Record.Failures)
			}
			by := l.Way.String()
			if l.Way.Plain() {
				by = "grpc-go "
			}
			if !strings.Contains(done.Client[0], by) {
				t.Errorf("%s, %s: %s", protocol, codec, done.Client[0])
			}
			p.Close()
		}
	}
}
