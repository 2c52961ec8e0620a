//go:build (real || soak) && linux

package operations_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
)

// chatMessages times chatPause is how long one stream takes.
const (
	chatMessages = 10
	chatPause    = 30 * time.Millisecond
)

// chatOnce has a stream that goes on for some time.
func chatOnce(ctx context.Context, client workpb.WorkClient) error {
	stream, err := client.Chat(ctx)
	if err != nil {
		return err
	}
	for n := range chatMessages {
		if err := stream.Send(&workpb.ChatMessage{Text: fmt.Sprint(n)}); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		reply, err := stream.Recv()
		if err != nil {
			return err
		}
		if reply.GetText() != fmt.Sprint(n) {
			return fmt.Errorf("message %d came back as %q", n, reply.GetText())
		}
		<-time.After(chatPause) // a stream is long because it pauses
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err = stream.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the end of a stream: %w", err)
	}
	return nil
}
