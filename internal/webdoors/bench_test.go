package webdoors_test

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
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
					testkit.Must(b, err)
					r.Header.Set("Content-Type", kind)
					response, err := client.Do(r)
					testkit.Must(b, err)
					_, _ = io.Copy(io.Discard, response.Body)
					response.Body.Close()
				}
			})
		}
	}
}

// BenchmarkTimeoutOfAMethod reports how long after their time calls end whose worker says
// nothing, at the 99th percentile, in milliseconds. 5 are promised.
func BenchmarkTimeoutOfAMethod(b *testing.B) {
	const bound = 20 * time.Millisecond
	h := newHouse(b, nil, func(o *relay.Options) { o.Methods = []stats.MethodRule{{Pattern: work + "Io", Timeout: bound}} })
	conn, err := grpc.NewClient(h.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(b, err)
	defer conn.Close()
	over, drained := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(drained)
		for {
			select {
			case <-h.seen:
			case <-h.deadlines:
			case <-over:
				return
			}
		}
	}()
	defer func() { close(over); <-drained }()
	var mu sync.Mutex
	var late []time.Duration
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			began := time.Now()
			_, err := workpb.NewWorkClient(conn).Io(b.Context(), &workpb.IoRequest{Millis: 1})
			took := time.Since(began)
			if status.Code(err) != codes.DeadlineExceeded {
				b.Error(err)
			}
			mu.Lock()
			late = append(late, took-bound)
			mu.Unlock()
		}
	})
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1000, "late-p99-ms")
}
