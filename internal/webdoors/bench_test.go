package webdoors_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/door"
)

// One unary call after the other by each door, over one connection, with its caller and its
// worker in this process.
func BenchmarkDoors(b *testing.B) {
	message := marshalled(b, &workpb.CountRequest{To: 1})
	for _, http2 := range []bool{false, true} {
		for name, kind := range map[string]string{"gRPC-Web": "application/grpc-web+proto", "Connect": "application/connect+proto"} {
			body := frames(0, message)
			if http2 {
				name += " HTTP2"
			}
			b.Run(name, func(b *testing.B) {
				h := newHouse(b, door.Origins{})
				client := form{http2: http2}.client(b)
				b.ReportAllocs()
				for b.Loop() {
					r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://"+h.addr+work+"Count", bytes.NewReader(body))
					if err != nil {
						b.Fatal(err)
					}
					r.Header.Set("Content-Type", kind)
					response, err := client.Do(r)
					if err != nil {
						b.Fatal(err)
					}
					_, _ = io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
			})
		}
	}
}
