package socket

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Whatever comes in, parsing neither panics nor makes of it what no client may send.
func FuzzParse(f *testing.F) {
	f.Add([]byte(callFrame("1", "test.echo", time.Second)))
	f.Add([]byte(pubFrame("1", "c", "x")))
	f.Add([]byte(`{"meta":{"type":3,"uuid":"urn:uuid:0ABCDEF0-1234-4ABC-8DEF-ABCDEFABCDEF"},"payload":null} {`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := parse(body, noRest)
		if err != nil {
			return
		}
		if !everything().has(r.kind) || len(r.id) != 0 && len(r.id) != 36 {
			t.Errorf("%s: %+v", body, r)
		}
		testkit.Want(t, r.args == nil || json.Valid(r.args), "%s: arguments %s", body, r.args)
		if r.kind == Call && (r.timeout == 0 || r.timeout%time.Millisecond != 0) {
			t.Errorf("%s: timeout %v", body, r.timeout)
		}
	})
}

// What is written is what json.Encoder writes.
func FuzzAnswer(f *testing.F) {
	f.Add("uri", "channel", "pattern", "message", []byte(`{"a": "<b>&\u2028"}`))
	f.Add("", "ü", "\xff", "a\"b\\", []byte("null"))
	f.Add("", "", "", "", []byte("\"\u2028\""))
	f.Fuzz(func(t *testing.T, uri, channel, pattern, message string, args []byte) {
		if !json.Valid(args) {
			args = nil
		}
		for _, a := range []answer{
			{kind: Ack, forKind: Call, uri: uri, channel: channel},
			{kind: Nack, forKind: Pub, uri: uri, channel: channel, code: nackCode, message: message},
			{kind: Res, uri: uri, args: args},
			{kind: Evnt, channel: channel, pattern: pattern, args: args},
		} {
			a.id = messageID(idOf("7"))
			got := a.appendTo(nil)
			want := encoded(t, a, got)
			testkit.Want(t, bytes.Equal(got, want), "got  %s\nwant %s", got, want)
		}
	})
}

// encoded is an answer as json.Encoder writes it, with the id that got has.
func encoded(t *testing.T, a answer, got []byte) []byte {
	t.Helper()
	var head struct {
		Meta struct {
			UUID string `json:"uuid"`
		} `json:"meta"`
	}
	err := json.Unmarshal(got, &head)
	testkit.Need(t, err == nil, "%s: %v", got, err)
	payload := any(struct {
		For     messageID `json:"for"`
		ForType Kind      `json:"for_type"`
		URI     string    `json:"uri,omitempty"`
		Channel string    `json:"channel,omitempty"`
	}{a.id, a.forKind, a.uri, a.channel})
	switch a.kind { //nolint:exhaustive // Ack is above
	case Nack:
		payload = struct {
			For     messageID `json:"for"`
			ForType Kind      `json:"for_type"`
			URI     string    `json:"uri,omitempty"`
			Channel string    `json:"channel,omitempty"`
			Code    int       `json:"code"`
			Message string    `json:"message"`
		}{a.id, a.forKind, a.uri, a.channel, 500, a.message}
	case Res, Evnt:
		payload = struct {
			For     messageID       `json:"for"`
			URI     string          `json:"uri,omitempty"`
			Channel string          `json:"channel,omitempty"`
			Pattern string          `json:"pattern,omitempty"`
			Args    json.RawMessage `json:"args"`
		}{a.id, a.uri, a.channel, a.pattern, a.args}
	}
	type meta struct {
		Type Kind   `json:"type"`
		UUID string `json:"uuid"`
	}
	var b bytes.Buffer
	testkit.Must(t, json.NewEncoder(&b).Encode(struct {
		Meta    meta `json:"meta"`
		Payload any  `json:"payload"`
	}{meta{a.kind, head.Meta.UUID}, payload}))
	return b.Bytes()
}

func TestAllowedMessages(t *testing.T) {
	for _, tc := range []struct {
		header, query string
		want          allowed
	}{
		{"", "", everything()},
		{"call", "", 1 << Call},
		{" SUB , unsb", "", 1<<Sub | 1<<Unsub},
		{"pub", "juggler-allowed-messages=call", 1 << Pub},
		{"", "Juggler-Allowed-Messages=call,pub", 1<<Call | 1<<Pub},
		{"", "juggler-allowed-messages=call&juggler-allowed-messages=sub", 1<<Call | 1<<Sub},
		{"none, known", "", everything()},
		{"call,*", "", 1 << Call},
		{"*", "", everything()},
		{"ack,res", "", everything()},
	} {
		r := &http.Request{Header: http.Header{}, URL: &url.URL{RawQuery: tc.query}}
		r.Header.Set(allowedName, tc.header)
		testkit.Equal(t, allowedBy(r), tc.want, "%q, %q", tc.header, tc.query)
	}
}

// Frames of every length that has a form of its own. RFC 6455, section 5.2.
func TestFrameHeader(t *testing.T) {
	for n, want := range map[int][]byte{
		0:     {0x81, 0},
		125:   {0x81, 125},
		126:   {0x81, 126, 0, 126},
		65535: {0x81, 126, 0xff, 0xff},
		65536: {0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0},
	} {
		got := withHeader(make([]byte, frameHeader+n), opText)
		testkit.Want(t, bytes.HasPrefix(got, want) && len(got) == len(want)+n, "%d bytes: % x", n, got[:len(want)])
	}
}

// The empty pattern is the channel that it matches; all others are what they say.
func TestEmptyPattern(t *testing.T) {
	for _, tc := range []struct {
		request request
		want    broker.Topic
	}{
		{request{pattern: true}, broker.Topic{}},
		{request{}, broker.Topic{}},
		{request{channel: "*", pattern: true}, broker.Topic{Name: "*", Pattern: true}},
	} {
		testkit.Equal(t, tc.request.topic(), tc.want, "the topic")
	}
}

// What others publish is text when it leaves, in every dialect: a strict client would end.
func TestArgsAreUTF8(t *testing.T) {
	for d := range dialects {
		a := answer{kind: Evnt, channel: "news", args: json.RawMessage("\"caf\xe9\"")}
		b := d.append(nil, &a)
		testkit.Want(t, d == juggler1Proto || utf8.Valid(b), "dialect %d: %q", d, b)
	}
}
