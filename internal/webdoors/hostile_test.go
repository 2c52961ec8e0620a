package webdoors_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/testkit"
)

const (
	// countHead begins a request of gRPC-Web over HTTP/1; a length or a coding follows.
	countHead = "POST " + work + "Count HTTP/1.1\r\nHost: x\r\nContent-Type: application/grpc-web+proto\r\n"
	textHead  = "POST " + work + "Count HTTP/1.1\r\nHost: x\r\nContent-Type: application/grpc-web-text\r\n"
	// countOne asks for one number, in a frame of seven bytes.
	countOne = "\x00\x00\x00\x00\x02\x08\x01"
	// last is a request that no door serves: it ends a connection that was kept.
	last = "GET /last HTTP/1.1\r\nHost: x\r\n\r\n"
)

// Requests over HTTP/1 that are ambiguous, broken or not what they say are answered or end, and
// what stands behind them is served only where they have an end. A good caller is served
// beside each.
func TestHostileRequests(t *testing.T) {
	h := newHouse(t, nil)
	good := form{}.client(t)
	whole := countHead + "Content-Length: 7\r\n\r\n" + countOne
	for name, c := range map[string]struct {
		sent string
		want []string // of each answer the status, and that of its trailers
	}{
		"behind each other": {strings.Repeat(whole, 3), []string{"200 0", "200 0", "200 0", "404"}},
		"both lengths": {countHead + "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n7\r\n" + countOne + "\r\n0\r\n\r\n" + whole,
			[]string{"200 0", "200 0", "404"}},
		"both lengths, the other way round": {countHead + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n7\r\n" + countOne + "\r\n0\r\n\r\n" + whole,
			[]string{"200 0", "200 0", "404"}},
		"two lengths":           {countHead + "Content-Length: 7\r\nContent-Length: 8\r\n\r\n" + countOne + whole, []string{"400"}},
		"two codings":           {countHead + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + whole, []string{"501"}},
		"a coding":              {countHead + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n" + whole, []string{"501"}},
		"extensions of chunks":  {countHead + "Transfer-Encoding: chunked\r\n\r\n7;a=b;c=\"d\"\r\n" + countOne + "\r\n0;e\r\n\r\n" + whole, []string{"200 0", "200 0", "404"}},
		"very long extensions":  {countHead + "Transfer-Encoding: chunked\r\n\r\n7;" + strings.Repeat("a", 5000) + "\r\n" + countOne + "\r\n0\r\n\r\n" + whole, []string{"200 3"}},
		"nothing but extension": {countHead + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("a", 1000)+"\r\n\x00\r\n", 30) + whole, []string{"200 3"}},
		"a chunk that is none":  {countHead + "Transfer-Encoding: chunked\r\n\r\nx\r\n" + whole, []string{"200 3"}},
		"a negative chunk":      {countHead + "Transfer-Encoding: chunked\r\n\r\n-7\r\n" + countOne + "\r\n0\r\n\r\n" + whole, []string{"200 3"}},
		"a chunk that lies":     {countHead + "Transfer-Encoding: chunked\r\n\r\n3\r\n" + countOne + "\r\n0\r\n\r\n" + whole, []string{"200 3"}},
		"trailers":              {countHead + "Transfer-Encoding: chunked\r\nTrailer: X-A\r\n\r\n7\r\n" + countOne + "\r\n0\r\nX-A: 1\r\nX-Cabrank-User: eve\r\n\r\n" + whole, []string{"200 0", "200 0", "404"}},
		"half a frame":          {countHead + "Content-Length: 3\r\n\r\n\x00\x00\x00" + whole, []string{"200 13", "200 0", "404"}},
		"a message that lies":   {countHead + "Content-Length: 7\r\n\r\n\x00\xff\xff\xff\xff\x08\x01" + whole, []string{"200 8", "200 0", "404"}},
		"no base64 behind some": {textHead + "Content-Length: 16\r\n\r\n" + base64.StdEncoding.EncodeToString([]byte(countOne)) + "AA*=" + whole, []string{"200 3", "200 0", "404"}},
		"base64 of another use": {textHead + "Content-Length: 4\r\n\r\n-_-_" + whole, []string{"200 3", "200 0", "404"}},
		"base64 in lines":       {textHead + "Content-Length: 14\r\n\r\nAAAA\r\nAAIIAQ==" + whole, []string{"200 3", "200 0", "404"}},
		"an odd number of it":   {textHead + "Content-Length: 13\r\n\r\n" + base64.StdEncoding.EncodeToString([]byte(countOne)) + "A" + whole, []string{"200 3", "200 0", "404"}},
		"a head of 100 KB":      {countHead + "X-Long: " + strings.Repeat("x", 100<<10) + "\r\nContent-Length: 7\r\n\r\n" + countOne, []string{"431"}},
		"a path of 100 KB":      {"POST /" + strings.Repeat("x", 100<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", []string{"431"}},
		"a GET of 100 KB":       {"GET " + work + "Io?encoding=json&message=" + strings.Repeat("x", 100<<10) + " HTTP/1.1\r\nHost: x\r\n\r\n", []string{"431"}},
		"a path that is none":   {"POST a.B/C HTTP/1.1\r\nHost: x\r\nContent-Type: application/grpc-web\r\n\r\n", []string{"400"}},
		"an upgrade":            {countHead + "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 7\r\n\r\n" + countOne + whole, []string{"200 0", "200 0", "404"}},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.EqualList(t, h.told(t, c.sent+last), c.want, "answered")
			h.wantGood(t, good)
		})
	}
}

// told sends text over a connection of its own, and returns the statuses of the answers until
// that ends.
func (h *house) told(t *testing.T, text string) (all []string) {
	t.Helper()
	nc := testkit.Dial(t, h.addr)
	defer nc.Close()
	testkit.Must(t, nc.SetDeadline(time.Now().Add(soon)))
	var sending sync.WaitGroup
	defer sending.Wait()
	sending.Go(func() { _, _ = io.WriteString(nc, text) }) // ends when it is read, or by the deadline
	r := bufio.NewReader(nc)
	for {
		answer, err := http.ReadResponse(r, nil)
		if err != nil {
			break
		}
		body, _ := io.ReadAll(answer.Body)
		if answer.Header.Get("Content-Type") == "application/grpc-web-text" {
			body = form{text: true}.decoded(t, body)
		}
		status := fmt.Sprint(answer.StatusCode)
		if _, code, is := strings.Cut(string(body), "grpc-status: "); is {
			code, _, _ = strings.Cut(code, "\r\n")
			status += " " + code
		}
		all = append(all, status)
	}
	nc.Close()
	return all
}

// wantGood has another caller be answered.
func (h *house) wantGood(t *testing.T, by *http.Client) {
	t.Helper()
	a := (form{}).call(t, by, h, "Count", &workpb.CountRequest{To: 1})
	testkit.Want(t, a.told("grpc-status") == "0", "another caller is told %v", a.trailers)
}

// Bodies of 10 MiB, as one message and as many, in each form: the worker says what becomes of
// them, three windows of them are held at most, in buffers that double, and a good caller is
// served beside them.
func TestLargeBodies(t *testing.T) {
	const size, mostHeld = 10 << 20, 6 << 20
	for name, frame := range map[string][]byte{
		"one message":   append(binary.BigEndian.AppendUint32([]byte{0}, size), make([]byte, size)...),
		"many messages": bytes.Repeat(append([]byte("\x00\x00\x00\x03\xfb\x08\x01\x7a\xf6\x07"), make([]byte, 1014)...), size>>10), // each is 1, and a field that nobody knows
	} {
		for _, f := range forms() {
			for _, known := range []bool{true, false} {
				t.Run(fmt.Sprint(name, ", ", f, ", known ", known), func(t *testing.T) {
					h := newHouse(t, nil)
					body := frame
					if f.text {
						body = base64.StdEncoding.AppendEncode(nil, frame)
					}
					ctx, cancel := context.WithTimeout(t.Context(), soon)
					defer cancel()
					r := f.request(ctx, t, h, "Sum", nil)
					r.Body = io.NopCloser(bytes.NewReader(body))
					if r.ContentLength = int64(len(body)); !known {
						r.ContentLength = -1
					}
					most, watched := h.watchBuffered()
					a := f.do(t, f.client(t), r)
					h.wantGood(t, form{}.client(t))
					watched()
					want := "8" // the worker's limit
					if name == "many messages" {
						want = "0"
					}
					sum := new(workpb.Number)
					if a.told("grpc-status") != want || want == "0" && (proto.Unmarshal(a.messages[0], sum) != nil || sum.GetValue() != size>>10) {
						t.Errorf("%v, sum %d", a.trailers, sum.GetValue())
					}
					n := most.Load()
					testkit.Want(t, n <= mostHeld, "%d bytes were held", n)
				})
			}
		}
	}
}

// watchBuffered notes how much the relay holds at most, until it is told to end.
func (h *house) watchBuffered() (most *atomic.Int64, end func()) {
	most = new(atomic.Int64)
	quit, ended := make(chan struct{}), make(chan struct{})
	go func() { // until end
		defer close(ended)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			most.Store(max(most.Load(), h.Stats().Buffered))
			select {
			case <-quit:
				return
			case <-tick.C:
			}
		}
	}()
	return most, func() { close(quit); <-ended }
}

// A caller that sends half a frame and then nothing has its answer by its deadline, and its
// call is the worker's no more.
func TestHalfAFrameAndSilence(t *testing.T) {
	for _, f := range forms() {
		h := newHouse(t, nil)
		reader, writer := io.Pipe()
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		r := f.request(ctx, t, h, "Sum", nil, "Grpc-Timeout", "200m")
		r.Body, r.ContentLength = reader, -1
		go func() { _, _ = io.WriteString(writer, "AAAAAAII") }() // ends with the request
		a := f.do(t, f.client(t), r)
		testkit.Want(t, a.told("grpc-status") == "4", "%v: %v", f, a.trailers)
		h.wantGood(t, form{}.client(t))
		testkit.Eventually(t, soon, "no call to be left", func() bool { return h.Stats().Doors["grpc-web"]["DEADLINE_EXCEEDED"] == 1 })
		writer.Close()
		cancel()
	}
}

// A head of 100 KB over HTTP/2 is refused, be it by a field or by the message of a GET, and its
// connection goes on.
func TestLargeHeadOverHTTP2(t *testing.T) {
	h := newHouse(t, nil)
	for i, f := range []form{{http2: true}, {true, true}, {http2: true}} {
		client, query := f.client(t), i == 2
		ctx, cancel := context.WithTimeout(t.Context(), soon)
		r := f.request(ctx, t, h, "Count", []proto.Message{&workpb.CountRequest{To: 1}})
		if query {
			r.Method, r.Body, r.ContentLength = http.MethodGet, nil, 0
			r.URL.RawQuery = "encoding=json&message=" + strings.Repeat("x", 100<<10)
		} else {
			r.Header.Set("X-Long", strings.Repeat("x", 100<<10))
		}
		response, err := client.Do(r)
		if err == nil {
			response.Body.Close()
			testkit.Want(t, response.StatusCode == http.StatusRequestHeaderFieldsTooLarge, "%v, a query %t: %s", f, query, response.Status)
		}
		cancel()
		h.wantGood(t, client)
	}
}

// Connect's bad requests have its errors, over both versions, and a good caller is served beside
// each: what lies, has half a frame or an unknown compression, and what is longer than 4 MiB in
// any encoding. Of a bomb not 1 MiB is held.
func TestBadRequestsByConnect(t *testing.T) {
	const inStream, size, bomb = "application/connect+", 4<<20 + 64<<10, 10 << 20
	long := bytes.Repeat([]byte(" "), size)
	for name, c := range map[string]struct {
		kind, field string // which says how it is compressed
		body        []byte
		status      int
		code        string
		mostHeld    int64
	}{
		"an unknown compression":           {protoType, "Content-Encoding: br", nil, 501, "unimplemented", size},
		"an unknown compression in JSON":   {jsonType, "Content-Encoding: br", nil, 501, "unimplemented", size},
		"an unknown compression, a stream": {inStream + "proto", "Connect-Content-Encoding: br", nil, 200, "unimplemented", size},
		"a message that lies":              {inStream + "proto", "", []byte("\x00\x00\x00\x01\x00abc"), 200, "internal", size},
		"a message that lies in JSON":      {inStream + "json", "", []byte("\x00\x00\x00\x01\x00abc"), 200, "internal", size},
		"half a frame":                     {inStream + "proto", "", []byte("\x00\x00"), 200, "internal", size},
		"half a frame in JSON":             {inStream + "json", "", []byte("\x00\x00"), 200, "internal", size},
		"a long message":                   {protoType, "", long, 429, "resource_exhausted", 2 * size},
		"a long message in JSON":           {jsonType, "", long, 429, "resource_exhausted", 2 * size},
		"a long message, a stream":         {inStream + "proto", "", frames(0, long), 200, "resource_exhausted", 2 * size},
		"a long message, a stream in JSON": {inStream + "json", "", frames(0, long), 200, "resource_exhausted", 2 * size},
		"a bomb":                           {protoType, "Content-Encoding: gzip", zipped(make([]byte, bomb)), 429, "resource_exhausted", 1 << 20},
		"a bomb in JSON":                   {jsonType, "Content-Encoding: gzip", zipped(make([]byte, bomb)), 429, "resource_exhausted", 1 << 20},
		"a bomb, a stream":                 {inStream + "proto", "Connect-Content-Encoding: gzip", frames(1, zipped(make([]byte, bomb))), 200, "resource_exhausted", 1 << 20},
		"a bomb, a stream in JSON":         {inStream + "json", "Connect-Content-Encoding: gzip", frames(1, zipped(make([]byte, bomb))), 200, "resource_exhausted", 1 << 20},
	} {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", HTTP/2 ", http2), func(t *testing.T) {
				h := newHouse(t, nil)
				field, value, _ := strings.Cut(cmp.Or(c.field, "X-None: 1"), ": ")
				for _, body := range []io.Reader{bytes.NewReader(c.body), io.MultiReader(bytes.NewReader(c.body))} { // of a length that is known, or not
					most, watched := h.watchBuffered()
					got := askFrom(t, h, http2, http.MethodPost, work+"Sum", body, "Content-Type", c.kind, field, value)
					h.wantGood(t, form{}.client(t))
					watched()
					if n := most.Load(); got.status != c.status || !strings.Contains(got.body, `"code":"`+c.code+`"`) || n > c.mostHeld {
						t.Errorf("%+v, %d bytes were held", got, n)
					}
				}
			})
		}
	}
}

// As by gRPC-Web, who begins a message by Connect and is silent then is answered by the deadline.
func TestHalfAMessageAndSilenceByConnect(t *testing.T) {
	h := newHouse(t, nil)
	ended := int64(0)
	for _, http2 := range []bool{false, true} {
		for kind, status := range map[string]int{protoType: 504, jsonType: 504, "application/connect+proto": 200, "application/connect+json": 200} {
			reader, writer := io.Pipe()
			go func() { _, _ = io.WriteString(writer, "\x00\x00\x00") }() // ends with the request
			got := askFrom(t, h, http2, http.MethodPost, work+"Sum", reader, "Content-Type", kind, "Connect-Timeout-Ms", "200")
			testkit.Want(t, got.status == status && strings.Contains(got.body, `"code":"deadline_exceeded"`),
				"%s, HTTP/2 %t: %+v", kind, http2, got)
			h.wantGood(t, form{}.client(t))
			writer.Close()
			ended++
			testkit.Eventually(t, soon, "no call to be left", func() bool { return h.Stats().Doors["connect"]["DEADLINE_EXCEEDED"] == uint64(ended) })
		}
	}
}
