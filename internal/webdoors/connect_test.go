package webdoors_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/examples/go/workpb"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
)

// says is an answer of Connect.
type says struct {
	status int
	header http.Header
	body   string
}

// ask sends one request over HTTP/1 or HTTP/2.
func ask(t testing.TB, h *house, http2 bool, method, path string, body []byte, fields ...string) says {
	t.Helper()
	return askFrom(t, h, http2, method, path, bytes.NewReader(body), fields...)
}

// askFrom sends one whose length is not known before, unless it is that of bytes.
func askFrom(t testing.TB, h *house, http2 bool, method, path string, body io.Reader, fields ...string) says {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+h.addr+path, body)
	testkit.Must(t, err)
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	response, err := form{http2: http2}.client(t).Do(r)
	testkit.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	testkit.Must(t, err)
	return says{response.StatusCode, response.Header, string(text)}
}

const jsonType, protoType = "application/json", "application/proto"

func marshalled(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	testkit.Must(t, err)
	return b
}

// A unary call has its answer, or its error with a status, details and metadata, in protobuf
// and in JSON.
func TestConnectUnary(t *testing.T) {
	h := newHouse(t, nil)
	fail := &workpb.FailRequest{Code: 5, Message: "no café", Reason: "closed"}
	inJSON, err := protojson.Marshal(fail)
	testkit.Must(t, err)
	detail := base64.RawStdEncoding.EncodeToString(marshalled(t, &workpb.FailDetail{Reason: "closed"}))
	wantError := `{"code":"not_found","message":"no café","details":[{"type":"cabrank.example.v1.FailDetail","value":"` + detail + `"}]}`
	for _, http2 := range []bool{false, true} {
		for kind, body := range map[string][]byte{protoType: marshalled(t, fail), jsonType: inJSON} {
			if got := ask(t, h, http2, "POST", work+"Fail", body, "Content-Type", kind); got.status != 404 || got.header.Get("Content-Type") != jsonType || got.body != wantError {
				t.Errorf("%s: %+v", kind, got)
			}
		}
		got := ask(t, h, http2, "POST", work+"Io", []byte(`{"millis": 0}`), "Content-Type", "application/json; charset=utf-8", "Connect-Protocol-Version", "1", "Connect-Timeout-Ms", "9000")
		<-h.seen
		if left := <-h.deadlines; got.status != 200 || got.header.Get("Content-Type") != jsonType || got.body != `{"millis":0,"worker":"w"}` || left <= 8*time.Second || left > 9*time.Second {
			t.Errorf("%+v, %v are left", got, left)
		}
		got = ask(t, h, http2, "POST", work+"Meta", marshalled(t, &workpb.MetaRequest{Headers: []string{"x-head"}, Trailers: []string{"x-tail", "x-raw-bin"}}),
			"Content-Type", protoType, "X-Head", "1", "X-Tail", "a", "X-Raw-Bin", "AAEC")
		if got.status != 200 || got.header.Get("Content-Type") != protoType || got.header.Get("X-Head") != "1" || got.header.Get("Trailer-X-Tail") != "a" || got.header.Get("Trailer-X-Raw-Bin") != "AAEC" {
			t.Errorf("%+v", got)
		}
	}
	codes := h.Stats().Doors["connect"]
	testkit.Want(t, codes["OK"] == 4 && codes["NOT_FOUND"] == 4, "%v", codes)
}

// A method is called by GET if its rule says that it may be repeated.
func TestConnectGet(t *testing.T) {
	h := newHouse(t, nil, func(o *relay.Options) {
		o.Methods = []stats.MethodRule{{Pattern: work + "Io", Idempotent: true}}
	})
	message := marshalled(t, &workpb.IoRequest{})
	for query, want := range map[string]struct {
		status int
		body   string
	}{
		"connect=v1&encoding=proto&base64=1&message=" + base64.RawURLEncoding.EncodeToString(message): {200, "\x12\x01w"},
		"encoding=json&message=" + url.QueryEscape(`{"millis":0}`):                                    {200, `{"millis":0,"worker":"w"}`},
		"connect=v2&encoding=json&message={}":                                                         {400, `{"code":"invalid_argument","message":"cabrank: the version of Connect is not 1: \"2\""}`},
		"encoding=xml&message=x":                                                                      {400, `{"code":"invalid_argument","message":"cabrank: encoding is neither proto nor json"}`},
		"encoding=proto&base64=1&message=@":                                                           {400, `{"code":"invalid_argument","message":"cabrank: message is not base64"}`},
		"encoding=proto&message=x&compression=brotli":                                                 {501, `{"code":"unimplemented","message":"cabrank: unknown compression \"brotli\": supported encodings are gzip"}`},
	} {
		got := ask(t, h, false, "GET", work+"Io?"+query, nil)
		testkit.Want(t, got.status == want.status && got.body == want.body, "%s: %+v", query, got)
		testkit.Want(t, got.status != 200 || strings.Contains(strings.Join(got.header["Vary"], " "), "Accept-Encoding"),
			"%s: %v", query, got.header)
	}
	if got := ask(t, h, true, "GET", work+"Fail?encoding=json&message={}", nil); got.status != 405 || got.header.Get("Allow") != "POST" {
		t.Errorf("%+v", got)
	}
}

// frames joins messages with their prefixes.
func frames(flag byte, messages ...[]byte) (b []byte) {
	for _, m := range messages {
		b = append(binary.BigEndian.AppendUint32(append(b, flag), uint32(len(m))), m...)
	}
	return b
}

// A stream of messages ends with its status and metadata, in protobuf and in JSON.
func TestConnectStreams(t *testing.T) {
	h := newHouse(t, nil)
	count, err := protojson.Marshal(&workpb.CountRequest{To: 2})
	testkit.Must(t, err)
	end := string(frames(2, []byte("{}")))
	for _, http2 := range []bool{false, true} {
		for name, c := range map[string]struct {
			method, kind string
			body         []byte
			want         string
		}{
			"protobuf": {"Count", "proto", frames(0, marshalled(t, &workpb.CountRequest{To: 2})), string(frames(0, []byte("\x08\x01"), []byte("\x08\x02"))) + end},
			"JSON":     {"Count", "json", frames(0, count), string(frames(0, []byte(`{"value":1}`), []byte(`{"value":2}`))) + end},
			"many":     {"Sum", "json", frames(0, []byte(`{"value":1}`), []byte(`{"value":20}`)), string(frames(0, []byte(`{"value":21}`))) + end},
			"an error": {"Fail", "json", frames(0, []byte(`{"code":8,"message":"full"}`)), `{"error":{"code":"resource_exhausted","message":"full","details":`},
			"no JSON":  {"Sum", "json", frames(0, []byte(`{`)), `{"error":{"code":"invalid_argument","message":"cabrank: `},
			"an end":   {"Sum", "json", frames(2, []byte(`{}`)), `{"error":{"code":"internal","message":"cabrank: a frame has an unknown flag"}}`},
		} {
			got := ask(t, h, http2, "POST", work+c.method, c.body, "Content-Type", "application/connect+"+c.kind)
			if got.status != 200 || got.header.Get("Content-Type") != "application/connect+"+c.kind || !strings.Contains(got.body, c.want) {
				t.Errorf("%s: %+v", name, got)
			}
		}
	}
}

func zipped(text []byte) []byte {
	b := &bytes.Buffer{}
	w := gzip.NewWriter(b)
	_, _ = w.Write(text)
	_ = w.Close()
	return b.Bytes()
}

// What is compressed by gzip is measured before it is read.
func TestConnectCompression(t *testing.T) {
	h := newHouse(t, nil)
	for name, c := range map[string]struct {
		body   []byte
		status int
		want   string
	}{
		"a message": {zipped([]byte(`{"millis":0}`)), 200, `{"millis":0,"worker":"w"}`},
		"a bomb":    {zipped(bytes.Repeat([]byte(" "), 10<<20)), 429, `{"code":"resource_exhausted","message":"cabrank: a message is longer than 4 MiB"}`},
		"no gzip":   {[]byte("{}"), 400, `{"code":"invalid_argument","message":"cabrank: the message is not what gzip writes"}`},
	} {
		got := ask(t, h, false, "POST", work+"Io", c.body, "Content-Type", jsonType, "Content-Encoding", "gzip")
		testkit.Want(t, got.status == c.status && got.body == c.want, "%s: %+v", name, got)
	}
}

// What is neither gRPC nor a form of it is told what there is.
func TestOtherRequests(t *testing.T) {
	h := newHouse(t, nil)
	for _, http2 := range []bool{false, true} {
		for _, c := range []struct {
			method, path, kind string
			status             int
		}{
			{"GET", "/", "", 200},
			{"GET", "/nothing", "", 404},
			{"POST", work + "Io", "text/html", 415},
			{"POST", work + "Nothing", jsonType, 404},
			{"POST", work + "Io", "application/connect+xml", 415},
		} {
			got := ask(t, h, http2, c.method, c.path, []byte("{}"), "Content-Type", c.kind)
			testkit.Want(t, got.status == c.status, "%s %s %s: %+v", c.method, c.path, c.kind, got)
		}
	}
}

// Values that are large are held once, and no longer than their call.
func TestConnectLongMessages(t *testing.T) {
	h := newHouse(t, nil)
	text := strings.Repeat("é", 1<<20)
	ask2, err := json.Marshal(map[string]any{"code": 5, "message": "x", "reason": text})
	testkit.Must(t, err)
	for _, http2 := range []bool{false, true} {
		if got := ask(t, h, http2, "POST", work+"Fail", ask2, "Content-Type", jsonType); !strings.Contains(got.body, `"code":"`) {
			t.Errorf("%d %.300s", got.status, got.body)
		}
		if got := ask(t, h, http2, "POST", work+"Fail", make([]byte, 5<<20), "Content-Type", protoType); got.status != 429 {
			t.Errorf("%d %.300s", got.status, got.body)
		}
	}
}
