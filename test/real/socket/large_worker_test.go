//go:build real || soak

package socket_test

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/cabrank/cabrank/test/real/harness"
)

// largeRole makes the test binary a worker whose Items answers with 1 MB that is 400 times
// as much JSON, whose Text with a text of 3 MB, and whose Wait does not answer.
const largeRole = "large-worker"

const largeService = "/test.Large/"

func runLarge([]string) error {
	listener, err := harness.ListenFault(os.Getenv("CABRANK_ADDR"))
	if err != nil {
		return err
	}
	const items, text = 500_000, 3_000_000
	empty := []byte{1<<3 | byte(protowire.BytesType), 0}
	large := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), strings.Repeat("x", text))
	answers := map[string]message{
		"Items": bytes.Repeat(empty, items),
		"Text":  protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), large),
	}
	server := grpc.NewServer(grpc.ForceServerCodec(messages{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var request message
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(stream)
		answer, ok := answers[strings.TrimPrefix(method, largeService)]
		switch {
		case !strings.HasPrefix(method, largeService):
			return grpcstatus.Error(codes.Unimplemented, "no health here")
		case !ok:
			<-stream.Context().Done()
			return stream.Context().Err()
		}
		return stream.SendMsg(&answer)
	}))
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() { // ends with the process
		<-stop
		server.Stop()
	}()
	return server.Serve(listener)
}

// message is one as it is on the wire, and messages its codec.
type (
	message  []byte
	messages struct{}
)

func (messages) Name() string { return "proto" }

func (messages) Marshal(v any) ([]byte, error) {
	m, ok := v.(*message)
	if !ok {
		return nil, fmt.Errorf("a %T", v)
	}
	return *m, nil
}

func (messages) Unmarshal(b []byte, v any) error {
	m, ok := v.(*message)
	if !ok {
		return fmt.Errorf("a %T", v)
	}
	*m = bytes.Clone(b)
	return nil
}
