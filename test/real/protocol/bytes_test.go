//go:build real || soak

package protocol_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/stats"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Compressed calls pass as they are, in both directions; so does a message of
// 32 MiB, and a stream that says nothing for longer than any of cabrank's own
// timeouts.
func TestBytesPassAsTheyAre(t *testing.T) {
	const silence = 4 * time.Second
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--queue-timeout", "1s")
	conn := harness.Dial(t, c.Addr)
	quiet := openChat(t, conn)
	quiet.echo("before the silence")
	began := time.Now()

	t.Run("gzip", func(t *testing.T) { wantGzipBothWays(t, c.Addr) })
	t.Run("32 MiB", func(t *testing.T) {
		large := openChat(t, conn, grpc.MaxCallRecvMsgSize(harness.MaxFaultMessage), grpc.MaxCallSendMsgSize(harness.MaxFaultMessage))
		large.echo(strings.Repeat("0123456789abcdef", 2<<20))
		large.end()
	})
	<-time.After(time.Until(began.Add(silence))) // the silence is what is tested
	quiet.echo("after the silence")
	quiet.end()
}

// chat is a stream that is echoed.
type chat struct {
	t      *testing.T
	stream grpc.BidiStreamingClient[workpb.ChatMessage, workpb.ChatMessage]
}

func openChat(t *testing.T, conn *grpc.ClientConn, opts ...grpc.CallOption) chat {
	t.Helper()
	stream, err := workpb.NewWorkClient(conn).Chat(t.Context(), opts...)
	testkit.Must(t, err)
	return chat{t, stream}
}

// echo sends a text and wants it back.
func (c chat) echo(text string) {
	c.t.Helper()
	err := c.stream.Send(&workpb.ChatMessage{Text: text})
	testkit.Need(c.t, err == nil, "send %d bytes: %v", len(text), err)
	reply, err := c.stream.Recv()
	testkit.Need(c.t, err == nil && reply.GetText() == text, "sent %d bytes, got %d back and %v", len(text), len(reply.GetText()), err)
}

// end wants the stream to end with OK.
func (c chat) end() {
	c.t.Helper()
	testkit.Must(c.t, c.stream.CloseSend())
	_, err := c.stream.Recv()
	testkit.Need(c.t, errors.Is(err, io.EOF), "the end of the stream: %v", err)
}

// wantGzipBothWays sees from the wire that the answer is compressed, too.
func wantGzipBothWays(t *testing.T, addr string) {
	t.Helper()
	wire := &wireStats{}
	stream := openChat(t, harness.Dial(t, addr, grpc.WithStatsHandler(wire), grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name))))
	stream.echo(strings.Repeat("a", 1<<20))
	stream.end()
	if wire.encoding != gzip.Name || wire.received >= 1<<18 {
		t.Errorf("1 MiB came back with encoding %q in %d bytes", wire.encoding, wire.received)
	}
}

// wireStats notes how one stream's answer came; read after its end.
type wireStats struct {
	encoding string
	received int
}

func (*wireStats) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*wireStats) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*wireStats) HandleConn(context.Context, stats.ConnStats)                       {}

func (w *wireStats) HandleRPC(_ context.Context, event stats.RPCStats) {
	switch e := event.(type) {
	case *stats.InHeader:
		w.encoding = e.Compression
	case *stats.InPayload:
		w.received += e.WireLength
	}
}

// Two hundred uploads of 1 MiB wait on the connection of a stream that runs:
// the stream keeps its pace, for a queued call's bytes stay within its own
// window, and memory stays bounded (R11).
func TestQueuedUploadsLeaveTheRunningStreamAlone(t *testing.T) {
	const (
		uploads, echoes = 200, 200
		pace            = 20 * time.Second // for all echoes; a stream that waits for an upload takes for ever
		memory          = 128 << 20        // buffer_total and the program itself, twice over
	)
	t.Setenv("CABRANK_STREAM_SLOTS", "2") // both
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--slots", "2", "--queue-timeout", "5m").Booted(1)
	conn := harness.Dial(t, c.Addr)
	running, holder := openChat(t, conn), openChat(t, conn)
	running.echo("running")
	holder.echo("holds the other slot")

	ended := make(chan error, uploads)
	message := strings.Repeat("u", 1<<20)
	for range uploads {
		go func() { ended <- harness.Upload(t.Context(), conn, message) }()
	}
	c.WaitMetric("cabrank_queue_length", uploads)
	began := time.Now()
	for range echoes {
		running.echo("still running")
	}
	took := time.Since(began)
	testkit.Want(t, took <= pace, "%d echoes took %v while %d uploads waited", echoes, took, uploads)
	holder.end()
	for range uploads {
		testkit.Must(t, <-ended)
	}
	running.end()
	peak := c.PeakMemory()
	testkit.Want(t, peak <= memory, "cabrank took %d MiB of memory, at most %d are expected", peak>>20, memory>>20)
}
