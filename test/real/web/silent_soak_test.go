//go:build soak

package web_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// A thousand streams of gRPC-Web on which nothing comes take 40 KiB each at most, over both
// versions of HTTP. The collector runs often: what their beginnings have left is not theirs.
func TestSilentStreams(t *testing.T) {
	const streams, perClient, mostEach = 1000, 200, 40
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprint("HTTP/2 ", http2), func(t *testing.T) {
			c := harness.StartLangCabrankEnv(t, "go", []string{"CABRANK_STREAM_SLOTS=1100", "GOGC=20"}, "--workers", "1", "--slots", "1200", "--transport", "unix")
			protocols := new(http.Protocols)
			protocols.SetHTTP1(!http2)
			protocols.SetUnencryptedHTTP2(http2)
			// Two numbers, the second of them a minute after the first.
			ask := func(client *http.Client) {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.Addr+"/cabrank.example.v1.Work/Count", bytes.NewReader([]byte("\x00\x00\x00\x00\x06\x08\x02\x10\xe0\xd4\x03")))
				testkit.Must(t, err)
				r.Header.Set("Content-Type", "application/grpc-web+proto")
				answer, err := client.Do(r)
				testkit.Must(t, err)
				t.Cleanup(func() { answer.Body.Close() })
				_, err = io.ReadFull(answer.Body, make([]byte, 7))
				testkit.Must(t, err)
			}
			newClient := func() *http.Client {
				transport := &http.Transport{Protocols: protocols}
				t.Cleanup(transport.CloseIdleConnections)
				return &http.Client{Transport: transport}
			}
			ask(newClient())
			before := harness.RSSKiB(t, c.PID)
			for range streams / perClient {
				client := newClient()
				for range perClient {
					ask(client)
				}
			}
			each := float64(harness.RSSKiB(t, c.PID)-before) / streams
			t.Logf("%.1f KiB each", each)
			testkit.Want(t, each <= mostEach, "%.1f KiB for each stream, want at most %d", each, mostEach)
		})
	}
}
