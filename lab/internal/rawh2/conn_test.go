package rawh2

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/testkit"
)

// notes is a Handler that writes down what it is told.
type notes struct {
	frames  []string
	batches int
	onFrame func(f Frame) error
}

func (n *notes) Frame(f Frame) error {
	n.frames = append(n.frames, string(f.Payload))
	if n.onFrame != nil {
		return n.onFrame(f)
	}
	return nil
}

func (n *notes) BatchRead() error {
	n.batches++
	return nil
}

// serve runs a server Conn on one end of a TCP connection and returns the
// other end, greeted; ended gives the error of Serve.
func serve(t *testing.T, setUp func(*Conn) Handler) (c net.Conn, fr *http2.Framer, ended <-chan error) {
	t.Helper()
	c, accepted := testkit.TCPPair(t)
	done := make(chan error, 1)
	conn := NewConn(accepted, false, readBuffer)
	h := setUp(conn)
	go func() {
		done <- conn.Serve(h)
		accepted.Close()
	}()
	return c, greet(t, c), done
}

// greet begins a connection of HTTP/2 with a server.
func greet(t *testing.T, c net.Conn) *http2.Framer {
	t.Helper()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	fr := http2.NewFramer(c, c)
	fr.AllowIllegalWrites = true
	io.WriteString(c, http2.ClientPreface)
	fr.WriteSettings()
	for _, want := range []http2.FrameType{http2.FrameSettings, http2.FrameWindowUpdate, http2.FrameSettings} {
		f := read(t, fr)
		testkit.Need(t, f.Header().Type == want, "got %v, want %v", f, want)
	}
	return fr
}

func read(t *testing.T, fr *http2.Framer) http2.Frame {
	t.Helper()
	f, err := fr.ReadFrame()
	testkit.Must(t, err)
	return f
}

// Frames arrive without padding and priority, however they are cut, and PING is answered.
func TestServeReadsFrames(t *testing.T) {
	h := &notes{}
	c, fr, ended := serve(t, func(*Conn) Handler { return h })
	var b bytes.Buffer
	w := http2.NewFramer(&b, nil)
	w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte("block"), EndHeaders: true, PadLength: 3, Priority: http2.PriorityParam{StreamDep: 5}})
	w.WriteDataPadded(1, false, []byte("data"), make([]byte, 9))
	w.WriteData(1, true, nil)
	w.WriteRSTStream(3, http2.ErrCodeCancel)
	w.WritePriority(1, http2.PriorityParam{StreamDep: 3})
	w.WriteRawFrame(0xfa, 0, 0, []byte("unknown"))
	w.WritePing(false, [8]byte{1, 2, 3})
	for _, octet := range b.Bytes() {
		c.Write([]byte{octet})
	}
	p, ok := read(t, fr).(*http2.PingFrame)
	testkit.Want(t, ok && p.IsAck() && p.Data == [8]byte{1, 2, 3}, "PING was not answered: %v", p)
	c.Close()
	err := <-ended
	testkit.Want(t, errors.Is(err, io.EOF), "got %v, want EOF", err)
	got, want := strings.Join(h.frames, "|"), "block|data||\x00\x00\x00\x08"
	testkit.Want(t, got == want, "got %q, want %q", got, want)
}

// What this package cannot do ends the connection.
func TestServeRefuses(t *testing.T) {
	cases := map[string]struct {
		send func(fr *http2.Framer)
		says string
	}{
		"block in pieces": {func(fr *http2.Framer) { fr.WriteHeaders(http2.HeadersFrameParam{StreamID: 1}) }, "in several frames"},
		"large frame":     {func(fr *http2.Framer) { fr.WriteData(1, false, make([]byte, maxPayload+1)) }, "a frame of 16385 bytes"},
		"padding":         {func(fr *http2.Framer) { fr.WriteRawFrame(http2.FrameData, http2.FlagDataPadded, 1, []byte{9, 1}) }, "padding of 9"},
	}
	for _, c := range cases {
		_, fr, ended := serve(t, func(*Conn) Handler { return &notes{} })
		c.send(fr)
		testkit.Refused(t, <-ended, c.says)
	}
}

// DATA beyond the peer's window waits, with the frames behind it, in order.
func TestSendKeepsToTheWindow(t *testing.T) {
	message := bytes.Repeat([]byte("m"), maxPayload)
	const streams = 6 // 4 fit in 65,535 bytes less 3
	_, fr, _ := serve(t, func(c *Conn) Handler {
		return &notes{onFrame: func(Frame) error {
			for i := range uint32(streams) {
				if err := c.Send(2*i+1, message, false, AppendHeaders(nil, 2*i+1, []byte{0x88}, true)); err != nil {
					return err
				}
			}
			return nil
		}}
	})
	fr.WriteData(1, true, []byte("go"))
	next := func(i uint32) {
		t.Helper()
		if d, ok := read(t, fr).(*http2.DataFrame); !ok || d.StreamID != 2*i+1 || !bytes.Equal(d.Data(), message) {
			t.Fatalf("want DATA of stream %d, got %v", 2*i+1, d)
		}
		if h, ok := read(t, fr).(*http2.HeadersFrame); !ok || h.StreamID != 2*i+1 {
			t.Fatalf("want trailers of stream %d, got %v", 2*i+1, h)
		}
	}
	for i := range uint32(3) {
		next(i)
	}
	fr.WritePing(false, [8]byte{})
	p := read(t, fr)
	testkit.Need(t, p.Header().Type == http2.FramePing, "a frame beyond the window: %v", p)
	fr.WriteWindowUpdate(0, 3*maxPayload)
	for i := range uint32(3) {
		next(3 + i)
	}
}

func TestSendRefusesWhatDoesNotFit(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	c := NewConn(a, true, SmallReadBuffer)
	testkit.Want(t, c.Send(1, make([]byte, maxPayload+1), true, nil) != nil, "a message larger than a frame was taken")
	c.streamWindow = 100
	testkit.Want(t, c.Send(1, make([]byte, 101), true, nil) != nil, "a message larger than the stream window was taken")
}

// What is appended between two reads goes out at once, while Serve waits for more.
func TestDoWritesBetweenBatches(t *testing.T) {
	var conn *Conn
	c, fr, ended := serve(t, func(own *Conn) Handler {
		conn = own
		return &notes{}
	})
	err := conn.Do(func() error {
		conn.Headers(1, []byte{0x88}, true)
		return nil
	})
	h, ok := read(t, fr).(*http2.HeadersFrame)
	testkit.Want(t, err == nil && ok && h.StreamID == 1, "got %v, %v", h, err)
	fr.WritePing(false, [8]byte{})
	read(t, fr)
	refused := errors.New("refused")
	if err := conn.Do(func() error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	c.Close()
	<-ended
}

// No test leaves a goroutine or a listener behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }
