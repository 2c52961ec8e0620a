package worker

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/testkit"
)

// warmServer answers every method by answer and gives the request's bytes and
// content type away.
func warmServer(t *testing.T, answer func(ctx context.Context, method string, message []byte) error) *grpc.ClientConn {
	t.Helper()
	listener := testkit.Listen(t)
	server := grpc.NewServer(grpc.ForceServerCodecV2(echoBytes{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var message []byte
		if err := stream.RecvMsg(&message); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(stream)
		if err := answer(stream.Context(), method, message); err != nil {
			return err
		}
		return stream.SendMsg([]byte("an answer"))
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	conn, err := grpc.NewClient("passthrough:///"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
		<-done
	})
	return conn
}

// The configured bytes arrive as they are, as a content type that every server
// takes.
func TestWarmUpCall(t *testing.T) {
	var method, message, content string
	conn := warmServer(t, func(ctx context.Context, m string, b []byte) error {
		in, _ := metadata.FromIncomingContext(ctx)
		method, message, content = m, string(b), strings.Join(in.Get("content-type"), ",")
		return nil
	})
	for _, bytes := range []string{"", "\x0a\x03abc"} {
		w := WarmUp{Method: "/shop.Cart/List", Message: []byte(bytes)}
		unknown, err := w.call(t.Context(), time.Minute, conn)
		testkit.Need(t, err == nil && !unknown, "unknown %v, error %v", unknown, err)
		testkit.Want(t, method == w.Method && message == bytes && content == "application/grpc",
			"got %s %q as %s", method, message, content)
	}
}

// A failure says what it was, and tells a method that does not exist from one
// that is not ready yet.
func TestWarmUpFailures(t *testing.T) {
	answers := map[string]error{
		"/s.S/Gone":  status.Error(codes.Unimplemented, "unknown method"),
		"/s.S/Early": status.Error(codes.Unavailable, "loading"),
	}
	conn := warmServer(t, func(ctx context.Context, method string, _ []byte) error {
		if method == "/s.S/Slow" {
			<-ctx.Done()
			return ctx.Err()
		}
		return answers[method]
	})
	for _, test := range []struct {
		method  string
		unknown bool
		want    string
	}{
		{"/s.S/Gone", true, "warm-up: the worker has no method /s.S/Gone"},
		{"/s.S/Early", false, "warm-up: /s.S/Early answered Unavailable: loading"},
		{"/s.S/Slow", false, "warm-up: /s.S/Slow answered DeadlineExceeded: "},
	} {
		limit := 20 * time.Millisecond
		if !strings.HasSuffix(test.method, "Slow") {
			limit = time.Minute
		}
		w := WarmUp{Method: test.method}
		unknown, err := w.call(t.Context(), limit, conn)
		testkit.Want(t, err != nil && unknown == test.unknown && strings.HasPrefix(err.Error(), test.want),
			"%s: unknown %v, error %v, want %q", test.method, unknown, err, test.want)
	}
}

// echoBytes is the codec of a server whose messages are bytes.
type echoBytes struct{ rawCodec }

func (echoBytes) Unmarshal(data mem.BufferSlice, into any) error {
	*into.(*[]byte) = data.Materialize()
	return nil
}
