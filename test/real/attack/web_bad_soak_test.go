//go:build soak

package attack_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// badGap is from one bad request to the next: each is to be seen by itself, as a flood of them
// takes the cores of cabrank by what sends it (TestFloodOfCallsOverHTTP1).
const badGap = 50 * time.Millisecond

// badRequests are requests over HTTP/1 that no door can serve, or that try to.
func badRequests() map[string]string {
	const size = 10 << 20
	post := func(kind, fields, body string) string {
		return "POST /cabrank.demo.v1.Greeter/SayHello HTTP/1.1\r\nHost: a\r\nContent-Type: application/" + kind + "\r\n" + fields + "\r\n" + body
	}
	whole := func(kind, fields, body string) string {
		return post(kind, fields+fmt.Sprintf("Content-Length: %d\r\n", len(body)), body)
	}
	frame := func(flag byte, message string) string {
		return string(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(message)))) + message
	}
	bomb := &bytes.Buffer{}
	w := gzip.NewWriter(bomb)
	_, _ = w.Write(make([]byte, size))
	_ = w.Close()
	const empty, chunked = "\x00\x00\x00\x00\x00", "Transfer-Encoding: chunked\r\n"
	long := strings.Repeat(" ", size)
	return map[string]string{
		"both lengths":               post("grpc-web", "Content-Length: 9\r\n"+chunked, "5\r\n"+empty+"\r\n0\r\n\r\n"),
		"extensions of chunks":       post("grpc-web", chunked, strings.Repeat("1;"+strings.Repeat("a", 1000)+"\r\n\x00\r\n", 30)+"0\r\n\r\n"),
		"10 MiB by gRPC-Web":         whole("grpc-web", "", frame(0, long)),
		"10 MiB by gRPC-Web in text": whole("grpc-web-text", "", base64.StdEncoding.EncodeToString([]byte(frame(0, long)))),
		"10 MiB by Connect":          whole("proto", "", long),
		"10 MiB in JSON":             whole("json", "", long),
		"10 MiB in a stream of JSON": whole("connect+json", "", frame(0, long)),
		"a bomb by Connect":          whole("proto", "Content-Encoding: gzip\r\n", bomb.String()),
		"a bomb in JSON":             whole("json", "Content-Encoding: gzip\r\n", bomb.String()),
		"a bomb in a stream of JSON": whole("connect+json", "Connect-Content-Encoding: gzip\r\n", frame(1, bomb.String())),
		"a message length that lies": whole("grpc-web", "", "\x00\xff\xff\xff\xff\x08\x01"),
		"text that is no base64":     whole("grpc-web-text", "", "????"),
		"a GET of 100 KB":            "GET /cabrank.demo.v1.Greeter/SayHello?encoding=json&message=" + strings.Repeat("x", 100<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n",
		"an unknown compression":     whole("json", "Content-Encoding: br\r\n", "{}"),
		"half a frame and silence":   post("grpc-web", "Grpc-Timeout: 50m\r\n"+chunked, "3\r\n\x00\x00\x00\r\n"),
		"half a message and silence": post("json", "Connect-Timeout-Ms: 50\r\nContent-Length: 10\r\n", "{"),
	}
}

// Beside a caller that makes one bad request after the other the calls of a good one take at
// most three times as long as in calm at the 99th percentile, and none fails.
func TestGoodCallerBesideBadRequests(t *testing.T) {
	descriptors := filepath.Join(t.TempDir(), "greeter.pb")
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(demopb.File_cabrank_demo_v1_greeter_proto)}})
	if err == nil {
		err = os.WriteFile(descriptors, set, 0o600)
	}
	testkit.Must(t, err)
	t.Setenv("CABRANK_DESCRIPTORS", descriptors)
	c := startPinned(t, "0")
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(rows, "request\tanswered by\tcalm p50\tp50\tcalm p99\tp99\tratio\tsent\t")
	for name, request := range badRequests() {
		t.Run(name, func(t *testing.T) {
			var calm, loud steadyTimes
			kib, sent := harness.RSSKiB(t, c.PID), 0
			for range turns {
				calm.add(callSteadily(t, c.Addr))
				end := insist(t, c.Addr, request)
				loud.add(callSteadily(t, c.Addr))
				sent += end()
			}
			n := calm.Failed + loud.Failed
			testkit.Want(t, n == 0 && sent != 0, "%d calls failed, %d of them in calm; %d were bad", n, calm.Failed, sent)
			said := fmt.Sprintf("%d, %d KiB", sent, harness.RSSKiB(t, c.PID)-kib)
			compareTo(t, rows, mostSlower, name+"\tcabrank", calm.Door, loud.Door, said)
			compareTo(t, rows, mostSlower, name+"\ta worker", calm.Worker, loud.Worker, said)
		})
	}
	rows.Flush()
	t.Logf("\n%s", table.String())
	c.Stop()
}

// insist has a caller of another address send a request again and again, over a connection of
// its own each time, and read what it is told. end returns how many it were.
func insist(t *testing.T, addr, request string) (end func() int) {
	t.Helper()
	from := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: harness.Patience}
	var over atomic.Bool
	var caller sync.WaitGroup
	sent := 0
	caller.Go(func() { // ends with the request at which it is told to
		tick := time.NewTicker(badGap)
		defer tick.Stop()
		for ; !over.Load(); sent++ {
			<-tick.C
			conn, err := from.Dial("tcp", addr)
			if err != nil {
				t.Error(err)
				return
			}
			_ = conn.SetDeadline(time.Now().Add(harness.Patience))
			caller.Go(func() { _, _ = io.WriteString(conn, request) }) // ends with the connection
			if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
			}
			conn.Close()
		}
	})
	end = sync.OnceValue(func() int {
		over.Store(true)
		caller.Wait()
		return sent
	})
	t.Cleanup(func() { end() })
	return end
}
