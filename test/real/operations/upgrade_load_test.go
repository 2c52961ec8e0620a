//go:build (real || soak) && linux

package operations_test

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/test/real/harness"
)

// chats are streams that go on for some time, one after the other, on a
// connection of their own.
type chats struct {
	quit    chan struct{}
	callers sync.WaitGroup
	mu      sync.Mutex
	ended   int
	failed  []error
}

// chatMessages times chatPause is how long one stream takes.
const (
	chatMessages = 10
	chatPause    = 30 * time.Millisecond
)

func startChats(t *testing.T, addr string, callers int) *chats {
	t.Helper()
	c := &chats{quit: make(chan struct{})}
	client := workpb.NewWorkClient(harness.Dial(t, addr))
	for range callers {
		c.callers.Go(func() {
			for {
				select {
				case <-c.quit:
					return
				default:
				}
				err := chatOnce(t, client)
				c.mu.Lock()
				c.ended++
				if err != nil {
					c.failed = append(c.failed, err)
				}
				c.mu.Unlock()
			}
		})
	}
	return c
}

func chatOnce(t *testing.T, client workpb.WorkClient) error {
	t.Helper()
	stream, err := client.Chat(t.Context())
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

// stop waits for the streams and holds that none has failed.
func (c *chats) stop(t *testing.T) {
	t.Helper()
	close(c.quit)
	c.callers.Wait()
	for _, err := range c.failed {
		t.Errorf("stream: %v", err)
	}
	if c.ended == 0 {
		t.Error("no stream has ended")
	}
	t.Logf("%d streams", c.ended)
}
