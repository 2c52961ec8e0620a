package caller

import (
	"errors"
	"io"
	"time"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Stream is a call of a method in which either side sends any number of messages.
//
// Errors: of Receive: io.EOF is the end of a call that went well.
// Concurrency: one goroutine sends while another receives.
type Stream interface {
	// Send sends an encoded message.
	Send(message []byte) error
	// CloseSend says that there are no more.
	CloseSend() error
	// Receive waits for an answer and returns its bytes.
	Receive() (size int, err error)
}

// Exchange sends messages and reads the answers up to the end of the call, whose error it
// returns. cancel ends the call.
func (o *Options) Exchange(s Stream, messages [][]byte, cancel func()) (answer traffic.Answer, err error) {
	if !o.ServerStreams || len(messages) < 2 {
		sent := send(s, messages)
		answer, err = o.receive(s)
		answer.Sent = sent
		return answer, err
	}
	// Both ways at a time: a server that answers while it reads must not wait for a
	// caller that writes first.
	sent := make(chan traffic.Volume, 1)
	go func() { sent <- send(s, messages) }()
	answer, err = o.receive(s)
	cancel() // a server that has ended may leave us writing
	answer.Sent = <-sent
	return answer, err
}

// send sends what the server takes: when it has ended the call, receive tells why.
func send(s Stream, messages [][]byte) (sent traffic.Volume) {
	for _, message := range messages {
		if s.Send(message) != nil {
			return sent
		}
		sent.Messages++
		sent.Bytes += int64(len(message))
	}
	_ = s.CloseSend() // the same
	return sent
}

func (o *Options) receive(s Stream) (answer traffic.Answer, err error) {
	for {
		size, err := s.Receive()
		if errors.Is(err, io.EOF) {
			return answer, nil
		} else if err != nil {
			return answer, err
		}
		answer.Received.Messages++
		answer.Received.Bytes += int64(size)
		if o.ServerStreams && answer.First.IsZero() {
			answer.First = time.Now()
		}
	}
}
