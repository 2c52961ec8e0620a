package grpcweb

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/h2"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/web/webcall"
)

// scripted is a call whose answer is known, or that waits for its cancellation.
type scripted struct {
	head      h2.Fields
	body      io.Reader
	cancelled chan struct{}
}

func (c *scripted) Write(p []byte) (int, error) { return len(p), nil }
func (c *scripted) CloseSend()                  {}
func (c *scripted) Cancel()                     { close(c.cancelled) }
func (c *scripted) Close()                      {}
func (c *scripted) Waits() bool                 { return false }
func (c *scripted) Read(p []byte) (int, error)  { return c.body.Read(p) }
func (c *scripted) Trailer() h2.Fields          { return h2.Fields(nil).Add("grpc-status", "0") }

func (c *scripted) Take(int) bool { return true }
func (c *scripted) Give(int)      {}

func (c *scripted) Status() (grpcwire.Code, string) {
	if c.head == nil {
		return grpcwire.Cancelled, ""
	}
	return grpcwire.OK, ""
}

func (c *scripted) Header() (h2.Fields, error) {
	if c.head == nil {
		<-c.cancelled
		return nil, errors.New("cut")
	}
	return c.head, nil
}

// serve answers a request by a call.
func serve(t *testing.T, c *scripted, body io.Reader, length int64) (*http.Response, string) {
	t.Helper()
	c.cancelled = make(chan struct{})
	h := &Handler{Open: func(*http.Request, webcall.Request) (webcall.Call, error) { return c, nil }}
	r := httptest.NewRequest(http.MethodPost, "/a.B/C", body)
	r.ContentLength = length
	r.Header.Set("Content-Type", binaryType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), w.Body.String()
}

// A request that breaks off is answered without the words of its connection, which name
// addresses.
func TestBrokenRequests(t *testing.T) {
	for _, length := range []int64{100, 100_000, -1} {
		body := io.MultiReader(strings.NewReader("\x00\x00"), iotest.ErrReader(errors.New("read tcp 10.0.0.1:8080->10.0.0.2:4711: i/o timeout")))
		_, got := serve(t, new(scripted), body, length)
		testkit.Want(t, got[5:] == "grpc-status: 3\r\ngrpc-message: cabrank: the request has broken off\r\n", "length %d: %q", length, got)
	}
}

// What a worker says of its length is not that of the answer, which has the trailers behind it.
func TestLengthOfTheAnswer(t *testing.T) {
	head := h2.Fields(nil).Add(":status", "200").Add("content-type", "application/grpc+json").Add("content-length", "6").Add("x-kept", "1")
	answer, got := serve(t, &scripted{head: head, body: strings.NewReader("\x00\x00\x00\x00\x01x")}, strings.NewReader(""), 0)
	if h := answer.Header; h.Get("Content-Length") != "" || h.Get("X-Kept") != "1" || h.Get("Content-Type") != "application/grpc-web+json" {
		t.Errorf("%v", h)
	}
	testkit.Want(t, got == "\x00\x00\x00\x00\x01x\x80\x00\x00\x00\x10grpc-status: 0\r\n", "%q", got)
}
