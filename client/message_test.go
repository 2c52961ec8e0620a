package client

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Requests are to the byte what the protocols have.
func TestFrames(t *testing.T) {
	call := request{kind: kindCall, name: `a"<b>`, args: json.RawMessage(`[1]`), timeout: 1500 * time.Millisecond}
	stream := call
	stream.credit = 5
	for _, tc := range []struct {
		dialect dialect
		request request
		want    string
	}{
		{juggler0{}, call, `{"meta":{"type":1,"uuid":"7"},"payload":{"timeout":1500000000,"uri":"a\"\u003cb\u003e","args":[1]}}`},
		{juggler0{}, request{kind: kindPub, name: "c", args: json.RawMessage(`null`)}, `{"meta":{"type":2,"uuid":"7"},"payload":{"channel":"c","args":null}}`},
		{juggler0{}, request{kind: kindSub, name: "c"}, `{"meta":{"type":3,"uuid":"7"},"payload":{"channel":"c"}}`},
		{juggler0{}, request{kind: kindUnsb, name: "c*", pattern: true}, `{"meta":{"type":4,"uuid":"7"},"payload":{"channel":"c*","pattern":true}}`},
		{new(juggler1), call, `{"type":"call","id":7,"timeout":1500,"uri":"a\"\u003cb\u003e","args":[1]}`},
		{new(juggler1), stream, `{"type":"call","id":7,"timeout":1500,"credit":5,"uri":"a\"\u003cb\u003e","args":[1]}`},
		{new(juggler1), request{kind: kindPub, name: "c", args: json.RawMessage(`{}`)}, `{"type":"pub","id":7,"channel":"c","args":{}}`},
		{new(juggler1), request{kind: kindSub, name: "c"}, `{"type":"sub","id":7,"channel":"c"}`},
		{new(juggler1), request{kind: kindUnsb, name: "c*", pattern: true}, `{"type":"unsb","id":7,"pattern":"c*"}`},
	} {
		testkit.Equal(t, string(tc.dialect.frame(tc.request, "7")), tc.want, "the frame")
	}
	testkit.Equal(t, string(new(juggler1).cancel("7"))+string(new(juggler1).credit("7", 9)), `{"type":"cancel","id":7}{"type":"credit","id":7,"credit":9}`,
		"cancel and credit")
}

// An error of a function is an object with the one key "error"; all else is a result.
func TestFailures(t *testing.T) {
	for result, want := range map[string]failure{
		`{"error":{"message":"no"}}`:            {0, "no"},
		`{"error":{"message":"no","code":404}}`: {404, "no"},
		`{"error":"no"}`:                        {0, `"no"`},
		`{"error":{"why":"no"}}`:                {0, `{"why":"no"}`},
		`{"error":null}`:                        {},
		`{"error":{"message":"no"},"more":1}`:   {},
		`{"errors":1}`:                          {},
		`"error"`:                               {},
	} {
		a, err := juggler0{}.parse([]byte(`{"meta":{"type":9},"payload":{"for":"1","args":` + result + `}}`))
		testkit.Must(t, err)
		got := failure{}
		if a.failure != nil {
			got = readFailure(a.failure)
		}
		testkit.Want(t, got == want && a.id == "1" && a.kind == kindRes, "%s: got %+v of %+v", result, got, a)
	}
	a, err := new(juggler1).parse([]byte(`{"type":"res","id":12,"error":{"code":499,"message":"canceled"}}`))
	testkit.Want(t, err == nil && a.id == "12" && a.code == canceledCode && a.message == "canceled" && a.failure != nil,
		"got %+v, %v", a, err)
}

// Whatever a server sends is read, or refused.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"meta":{"type":10},"payload":{"for":"1","channel":"c","pattern":"*","args":[1,2]}}`))
	f.Add([]byte(`{"meta":{"type":9},"payload":{"for":"1","args":{"error":{"message":"no"}}}}`))
	f.Add([]byte(`{"type":"evnt","id":"0b0d","channel":"c","pattern":"*","args":"x"}`))
	f.Add([]byte(`{"type":"res","id":7,"error":{"code":404,"message":"no"},"more":true}`))
	f.Add([]byte(`{"type":"welcome","connection":"c"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, d := range []dialect{juggler0{}, new(juggler1)} {
			a, err := d.parse(body)
			if err != nil {
				continue
			}
			if a.args != nil && !json.Valid(a.args) || a.failure != nil && !json.Valid(a.failure) {
				t.Errorf("%s became %+v", body, a)
			}
			if a.failure != nil {
				readFailure(a.failure)
			}
		}
		_, _ = readWelcome(body)
	})
}
