package rawh2

import (
	"bytes"
	"context"
	"net"
	"strconv"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/internal/testkit"
)

// A call is answered once its message is whole, however it was cut, with
// trailers when it has ended, also if the end comes alone.
func TestBackendAnswers(t *testing.T) {
	once := AppendMessage(nil, 16, 1, 0, 1)
	thrice := AppendMessage(nil, 100, 3, 0, 2)
	cases := map[string]struct {
		parts   [][]byte // DATA frames of the call; the last one ends it
		message []byte
		answers int
	}{
		"one frame":     {[][]byte{once}, once, 1},
		"three answers": {[][]byte{thrice}, thrice, 3},
		"cut":           {[][]byte{once[:3], once[3:9], once[9:]}, once, 1},
		"end alone":     {[][]byte{thrice, nil}, thrice, 3},
		"cut and alone": {[][]byte{thrice[:50], thrice[50:], nil}, thrice, 3},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			fr := dialEcho(t)
			for stream := uint32(1); stream < 6; stream += 2 {
				fr.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, EndHeaders: true, BlockFragment: []byte{0x83}})
				for i, part := range c.parts {
					fr.WriteData(stream, i == len(c.parts)-1, part)
				}
				checkAnswer(t, fr, stream, bytes.Repeat(c.message, c.answers))
			}
			fr.WritePing(false, [8]byte{})
			f, err := fr.ReadFrame()
			testkit.Want(t, err == nil && f.Header().Type == http2.FramePing, "got %v, %v behind the answers", f, err)
		})
	}
}

// dialEcho starts a worker and returns the client's end, greeted.
func dialEcho(t *testing.T) *http2.Framer {
	t.Helper()
	port := testkit.FreePorts(t, 2)
	addr, last := net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), net.JoinHostPort("127.0.0.1", strconv.Itoa(port+1))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Echo(ctx, addr, 2) }()
	var c net.Conn
	var err error
	testkit.Eventually(t, 30*time.Second, "it listens", func() bool {
		c, err = net.Dial("tcp", last)
		return err == nil
	})
	t.Cleanup(func() {
		c.Close()
		cancel()
		err := <-ended
		testkit.Want(t, err == nil, "%v", err)
	})
	fr := greet(t, c)
	fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	fr.ReadMetaHeaders.SetAllowedMaxDynamicTableSize(4096)
	return fr
}

func checkAnswer(t *testing.T, fr *http2.Framer, stream uint32, want []byte) {
	t.Helper()
	var got []byte
	for heads := 0; heads < 2; {
		switch f := read(t, fr).(type) {
		case *http2.DataFrame:
			got = append(got, f.Data()...)
		case *http2.MetaHeadersFrame:
			testkit.Need(t, f.StreamID == stream && f.StreamEnded() == (heads == 1), "stream %d: got %v", stream, f)
			heads++
		default:
			t.Fatalf("got %v", f)
		}
	}
	testkit.Want(t, bytes.Equal(got, want), "got %d bytes, want %d", len(got), len(want))
}
