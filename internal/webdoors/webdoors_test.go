package webdoors_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
)

// A call has the same answer in every form: messages, status, details and metadata.
func TestEqualAnswers(t *testing.T) {
	h := newHouse(t, nil)
	conn, err := grpc.NewClient(h.addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	testkit.Must(t, err)
	defer conn.Close()
	for method, ask := range map[string]proto.Message{
		"Count":   &workpb.CountRequest{To: 3},
		"Fail":    &workpb.FailRequest{Code: 5, Message: "no café", Reason: "closed"},
		"Meta":    &workpb.MetaRequest{Headers: []string{"x-head"}, Trailers: []string{"x-tail", "x-raw-bin"}},
		"Nothing": &workpb.MetaRequest{},
	} {
		want := byGRPC(t, conn, method, ask)
		for _, f := range forms() {
			a := f.call(t, f.client(t), h, method, ask, "X-Head", "1", "X-Tail", "a", "X-Tail", "b", "X-Raw-Bin", "AAEC")
			got := outcome{messages: a.messages, code: a.told("grpc-status"), details: a.told("grpc-status-details-bin"), head: a.Header["X-Head"], tail: a.trailers["x-tail"], raw: a.trailers["x-raw-bin"]}
			if got.details != "" {
				got.details = "some"
			}
			testkit.Want(t, a.StatusCode == http.StatusOK && reflect.DeepEqual(got, want),
				"%s, %v: %d %+v, want %+v", method, f, a.StatusCode, got, want)
		}
	}
	if a := forms()[0].call(t, forms()[0].client(t), h, "Fail", &workpb.FailRequest{Code: 5, Message: "no café"}); a.told("grpc-message") != "no caf%C3%A9" {
		t.Errorf("%q", a.told("grpc-message"))
	}
	for _, name := range []string{"grpc", "grpc-web"} {
		if got := h.Stats().Doors[name]; got["NOT_FOUND"] == 0 || got["UNIMPLEMENTED"] == 0 {
			t.Errorf("door %s: %v", name, got)
		}
	}
}

// outcome is what a caller has of a call.
type outcome struct {
	messages        [][]byte
	code, details   string
	head, tail, raw []string
}

// byGRPC makes a call by gRPC itself.
func byGRPC(t *testing.T, conn *grpc.ClientConn, method string, ask proto.Message) (got outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(metadata.AppendToOutgoingContext(t.Context(), "x-head", "1", "x-tail", "a", "x-tail", "b", "x-raw-bin", "\x00\x01\x02"), soon)
	defer cancel()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, work+method)
	testkit.Must(t, err)
	testkit.Must(t, stream.SendMsg(ask))
	_ = stream.CloseSend()
	for {
		number := new(workpb.Number)
		if err = stream.RecvMsg(number); err != nil {
			break
		}
		content, _ := proto.Marshal(number)
		got.messages = append(got.messages, content)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	s := status.Convert(err)
	if got.code = strconv.Itoa(int(s.Code())); len(s.Details()) > 0 {
		got.details = "some"
	}
	head, _ := stream.Header()
	got.head, got.tail = head.Get("x-head"), stream.Trailer().Get("x-tail")
	if raw := stream.Trailer().Get("x-raw-bin"); len(raw) > 0 {
		got.raw = []string{"AAEC"}
	}
	return got
}

// Each message leaves when it has come, and the caller of a stream may go.
func TestStreams(t *testing.T) {
	for _, f := range forms() {
		t.Run(f.String(), func(t *testing.T) {
			h := newHouse(t, nil)
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			response, err := f.client(t).Do(f.request(ctx, t, h, "Count", []proto.Message{&workpb.CountRequest{To: 3, PauseMillis: 1}}))
			testkit.Must(t, err)
			defer response.Body.Close()
			size := len("\x00\x00\x00\x00\x02\x08\x01")
			if f.text {
				size = 12
			}
			for range 2 { // the worker waits behind each
				_, err = io.ReadFull(response.Body, make([]byte, size))
				testkit.Must(t, err)
				h.release <- struct{}{}
			}
			rest, err := io.ReadAll(response.Body)
			testkit.Want(t, err == nil && len(rest) >= size, "%d bytes, %v", len(rest), err)
		})
	}
}

// What the caller sends as it comes reaches the worker as a stream.
func TestClientStream(t *testing.T) {
	for _, f := range forms() {
		h := newHouse(t, nil)
		r := f.request(t.Context(), t, h, "Sum", []proto.Message{&workpb.Number{Value: 1}, &workpb.Number{Value: 20}, &workpb.Number{Value: 300}})
		r.ContentLength = -1
		a := f.do(t, f.client(t), r)
		sum := new(workpb.Number)
		testkit.Want(t, len(a.messages) == 1 && proto.Unmarshal(a.messages[0], sum) == nil && sum.GetValue() == 321,
			"%v: %q, %v", f, a.messages, a.trailers)
	}
}

// A caller that leaves has the worker's call cancelled.
func TestCallersThatLeave(t *testing.T) {
	for _, f := range forms() {
		h := newHouse(t, nil)
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		r := f.request(ctx, t, h, "Io", []proto.Message{&workpb.IoRequest{Millis: 1}})
		go func() { // ends with ctx
			response, err := f.client(t).Do(r)
			if err == nil {
				_, err = io.ReadAll(response.Body)
				response.Body.Close()
			}
			gone <- err
		}()
		<-h.seen
		leave()
		err := <-gone
		testkit.Want(t, err != nil, "%v: an answer", f)
		testkit.Eventually(t, soon, "the worker's call to be cancelled", func() bool { return h.cancelled.Load() == 1 })
	}
}

// Workers are told of the deadline and of the caller, and by nobody else who that is.
func TestWhatWorkersAreTold(t *testing.T) {
	proxies := func(o *relay.Options) { o.Proxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} }
	for _, f := range forms() {
		h := newHouse(t, nil)
		a := f.call(t, f.client(t), h, "Io", &workpb.IoRequest{}, "Grpc-Timeout", "10S", "X-Kept", "1", "X-Cabrank-User", "eve", "x-cabrank-socket", "1", "X-Cabrank-Client", "eve",
			"Connect-Timeout-Ms", "5", "Grpc-Previous-Rpc-Attempts", "4", "X-Forwarded-For", "192.0.2.9")
		md, left := <-h.seen, <-h.deadlines
		testkit.Want(t, a.told("grpc-status") == "0" && left > 9*time.Second && left <= 10*time.Second,
			"%v: status %s, %v are left", f, a.told("grpc-status"), left)
		for _, name := range []string{"x-cabrank-user", "x-cabrank-socket", "x-cabrank-client", "connect-timeout-ms", "grpc-previous-rpc-attempts"} {
			if got := md.Get(name); len(got) > 0 {
				t.Errorf("%v: %s: %q", f, name, got)
			}
		}
		if got := [][]string{md.Get("x-kept"), md.Get("x-forwarded-for"), md.Get("content-type")}; !reflect.DeepEqual(got, [][]string{{"1"}, {"192.0.2.9, 127.0.0.1"}, {"application/grpc+proto"}}) {
			t.Errorf("%v: %q", f, got)
		}
		behind := newHouse(t, nil, proxies)
		f.call(t, f.client(t), behind, "Io", &workpb.IoRequest{}, "X-Forwarded-For", "198.51.100.1, 192.0.2.9, 127.0.0.1")
		testkit.EqualList(t, (<-behind.seen).Get("x-forwarded-for"), []string{"198.51.100.1, 192.0.2.9"}, "%v behind a proxy", f)
	}
}

// What cabrank itself answers has the form of the door: of a rate limit, of a queue that is
// full, and of one in which no slot was free in time.
func TestOwnAnswers(t *testing.T) {
	for says, change := range map[string]func(*relay.Options){
		"rate limit":           func(o *relay.Options) { o.Keys.Rate, o.Keys.Burst = 0.001, 4 },
		"queue full":           func(o *relay.Options) { o.QueueLength = 1 },
		"no free slot in time": func(o *relay.Options) { o.QueueTimeout = 50 * time.Millisecond },
	} {
		h := newHouse(t, nil, change)
		ask(t, h, true, http.MethodPost, work+"Io", []byte("{}"), "Content-Type", jsonType) // its method is described now
		<-h.seen
		var busy sync.WaitGroup
		for range 3 { // two run, one waits
			client := form{}.client(t)
			busy.Go(func() { form{}.call(t, client, h, "Io", &workpb.IoRequest{Millis: 1}) })
		}
		testkit.Eventually(t, soon, "two calls to run", func() bool { return len(h.seen) == 2 })
		testkit.Eventually(t, soon, "one to wait", func() bool { return h.Load().Waiting == 1 || says == "no free slot in time" })
		for _, f := range forms() {
			a := f.call(t, f.client(t), h, "Count", &workpb.CountRequest{})
			kind := "application/grpc-web+proto"
			if f.text {
				kind = "application/grpc-web-text+proto"
			}
			if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != kind || a.told("grpc-status") != "8" || a.told("grpc-message") != "cabrank: "+says {
				t.Errorf("%s, %v: %d %v %v", says, f, a.StatusCode, a.Header, a.trailers)
			}
		}
		refused := `{"code":"resource_exhausted","message":"cabrank: ` + says + `"}`
		end := string(frames(2, []byte(`{"error":`+refused+`}`)))
		for _, http2 := range []bool{false, true} {
			for kind, c := range map[string]struct {
				body []byte
				want [3]any
			}{
				protoType:                   {nil, [3]any{429, jsonType, refused}},
				jsonType:                    {[]byte("{}"), [3]any{429, jsonType, refused}},
				"application/connect+proto": {frames(0, nil), [3]any{200, "application/connect+proto", end}},
				"application/connect+json":  {frames(0, []byte("{}")), [3]any{200, "application/connect+json", end}},
			} {
				got := ask(t, h, http2, http.MethodPost, work+"Count", c.body, "Content-Type", kind)
				testkit.Want(t, ([3]any{got.status, got.header.Get("Content-Type"), got.body}) == c.want,
					"%s, %s, HTTP/2 %t: %+v", says, kind, http2, got)
			}
		}
		close(h.release)
		busy.Wait()
	}
}

// The timeout of a method ends its calls by every door: the worker is told what is left, and
// none runs on. A worker may notice first, and says so itself.
func TestTimeoutOfAMethod(t *testing.T) {
	const bound = 50 * time.Millisecond
	h := newHouse(t, nil, func(o *relay.Options) { o.Methods = []stats.MethodRule{{Pattern: work + "Io", Timeout: bound}} })
	ended := int64(0)
	over := func(what string) {
		t.Helper()
		<-h.seen
		left := <-h.deadlines
		testkit.Want(t, left > 0 && left <= bound, "%s: its worker has %v", what, left)
		ended++
		testkit.Eventually(t, soon, "the worker's call to be cancelled", func() bool { return int64(h.cancelled.Load()) == ended })
	}
	for _, f := range forms() {
		a := f.call(t, f.client(t), h, "Io", &workpb.IoRequest{Millis: 1})
		testkit.Want(t, a.told("grpc-status") == "4" && strings.Contains(a.told("grpc-message"), "deadline exceeded"),
			"%v: %v", f, a.trailers)
		over(f.String())
	}
	for _, http2 := range []bool{false, true} {
		for kind, body := range map[string][]byte{protoType: marshalled(t, &workpb.IoRequest{Millis: 1}), jsonType: []byte(`{"millis": 1}`)} {
			got := ask(t, h, http2, http.MethodPost, work+"Io", body, "Content-Type", kind)
			if got.status != http.StatusGatewayTimeout || !strings.HasPrefix(got.body, `{"code":"deadline_exceeded","message":"`) {
				t.Errorf("%s, HTTP/2 %t: %+v", kind, http2, got)
			}
			over(kind)
		}
	}
}

// What is no gRPC-Web is answered in one line.
func TestBadRequests(t *testing.T) {
	h := newHouse(t, nil)
	for _, http2 := range []bool{false, true} {
		client := form{http2: http2}.client(t)
		for name, c := range map[string]struct {
			method, kind, body string
			status             int
			want               string
		}{
			"a GET":        {"GET", "application/grpc-web", "", 405, "POST"},
			"no base64":    {"POST", "application/grpc-web-text", "????", 200, "Y"},
			"half a group": {"POST", "application/grpc-web-text", "AAAAA", 200, "Y"},
			"half a frame": {"POST", "application/grpc-web", "\x00\x00", 200, "grpc-status: 13"},
			"a lie":        {"POST", "application/grpc-web", "\x00\x00\x00\x01\x00abc", 200, "grpc-status: 13"},
			"an odd flag":  {"POST", "application/grpc-web", "\x07\x00\x00\x00\x00", 200, "grpc-status: 13"},
		} {
			r, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+h.addr+work+"Count", strings.NewReader(c.body))
			testkit.Must(t, err)
			r.Header.Set("Content-Type", c.kind)
			response, err := client.Do(r)
			testkit.Need(t, err == nil, "%s: %v", name, err)
			text, err := io.ReadAll(response.Body)
			response.Body.Close()
			if strings.HasSuffix(c.kind, "text") {
				text = form{text: true}.decoded(t, text)
				c.want = "grpc-status: 3\r\ngrpc-message: cabrank: the body is not base64\r\n"
			}
			testkit.Want(t, err == nil && response.StatusCode == c.status && strings.Contains(string(text), c.want),
				"%s, HTTP/2 %t: %d %q, %v", name, http2, response.StatusCode, text, err)
		}
	}
}

// A connection of HTTP/1 is kept for the next call, makes room while it has none, and ends in
// a drain: behind its answer, or at once.
func TestConnectionsAreKept(t *testing.T) {
	h := newHouse(t, nil)
	client := form{}.client(t)
	for range 5 {
		form{}.call(t, client, h, "Count", &workpb.CountRequest{})
	}
	testkit.Equal(t, h.Stats().Connections, 1, "connections")
	nc := testkit.Dial(t, h.addr)
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	testkit.Must(t, (form{}).request(ctx, t, h, "Io", []proto.Message{&workpb.IoRequest{Millis: 1}}).Write(nc))
	<-h.seen
	drained := make(chan int, 1)
	go func() { drained <- h.Drain(soon, nil) }() // ends with the calls
	testkit.Eventually(t, soon, "the idle connection to end", func() bool { return h.Stats().Connections == 1 })
	h.release <- struct{}{}
	response, err := http.ReadResponse(bufio.NewReader(nc), nil)
	testkit.Must(t, err)
	text, err := io.ReadAll(response.Body)
	testkit.Want(t, err == nil && strings.Contains(string(text), "grpc-status: 0"), "%q, %v", text, err)
	testkit.Equal(t, <-drained, 0, "calls were cut")
}

// Callers reach those of gRPC's own services that they may, by every door; Cabrank itself asks
// workers all the same. Reflection has no answer to an empty question.
func TestOwnServices(t *testing.T) {
	const check, reflect = "/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
	for offered, want := range map[relay.OwnServices][2]string{relay.OwnAll: {"0", "3"}, relay.OwnHealth: {"0", "12"}, relay.OwnNone: {"12", "12"}} {
		h := newHouse(t, nil, func(o *relay.Options) { o.OwnServices = offered })
		for i, path := range []string{check, reflect} {
			got := ask(t, h, true, "POST", path, frames(0, nil), "Content-Type", "application/grpc-web")
			testkit.Want(t, strings.Contains(got.body, "grpc-status: "+want[i]+"\r\n"),
				"%d, %s: %q, want %s", offered, path, got.body, want[i])
		}
		if got := ask(t, h, true, "POST", work+"Io", []byte(`{}`), "Content-Type", jsonType); got.status != http.StatusOK {
			t.Errorf("%d: %+v", offered, got)
		}
	}
}
