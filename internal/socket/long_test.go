package socket

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// noRest is for who has no turn.
func noRest() {}

// A long message is read as a short one is, in every dialect, and others have their turn
// meanwhile.
func TestLongMessagesAreReadInParts(t *testing.T) {
	const parts = 10
	numbers := "[" + strings.Repeat("1,", parts*longText/2) + "1]"
	for name, message := range map[string]string{
		"args":    `{"type":"pub","id":7,"args":ARGS,"channel":"c"}`,
		"spaces":  "\n { \"type\" : \"pub\",\n\"id\":7 , \"Args\" :\t ARGS\n, \"channel\": \"c\" } \n",
		"twice":   `{"type":"pub","id":7,"args":1,"channel":"c","args":ARGS}`,
		"escaped": `{"type":"pub","id":7,"\u0061rgs":ARGS,"channel":"c"}`,
		"others":  `{"type":"pub","id":7,"args":ARGS,"channel":"c","more":ARGS,"less":{"a":ARGS}}`,
	} {
		rests := 0
		r, err := parseJSON([]byte(strings.ReplaceAll(message, "ARGS", numbers)), func() { rests++ })
		want, _ := parseJSON([]byte(strings.ReplaceAll(message, "ARGS", "null")), noRest)
		testkit.Want(t, err == nil && string(r.args) == numbers && rests >= parts/2,
			"%s: %v, %d bytes of arguments, %d rests", name, err, len(r.args), rests)
		testkit.Want(t, r.kind == want.kind && r.id == want.id && r.channel == want.channel && r.refused == nil,
			"%s: %+v, want %+v", name, r, want)
	}
	rests := 0
	r, err := parse([]byte(`{"meta":{"type":1},"payload":{"uri":"u","args":`+numbers+`}} behind`), func() { rests++ })
	testkit.Want(t, err == nil && r.kind == Call && r.uri == "u" && string(r.args) == numbers && rests >= parts/2,
		"%v, %+v, %d rests", err, r.kind, rests)
	if !isJSON([]byte(numbers), noRest) || isJSON([]byte(numbers+"1"), noRest) || isJSON([]byte(numbers[1:]), noRest) || isJSON(nil, noRest) {
		t.Error("what is JSON is none")
	}
	for name, message := range map[string]string{
		"trailing": `{"args":ARGS}1`, "cut": `{"args":ARGS`, "array": `[ARGS]`, "comma": `{"args":ARGS,}`, "colon": `{"args" ARGS}`, "deep": strings.Repeat("[", 2*longText),
		"name": `{"type":"pub","channel":"` + strings.Repeat("x", longText) + `"}`,
	} {
		if r, err := parseJSON([]byte(strings.ReplaceAll(message, "ARGS", numbers)), noRest); err == nil {
			t.Errorf("%s: %+v", name, r.kind)
		}
	}
	r, err = parseJSON([]byte(`{"type":"pub","id":7,"channel":`+numbers+`}`), noRest)
	testkit.Want(t, err == nil && r.refused != nil && r.refused.Error() == "channel: not a text",
		"a long array as a channel: %v, %v", err, r.refused)
}

// What is split says what the whole has said, by encoding/json.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{
		`{"a":1,"args":[1,{"args":2}],"b":"\"}"}`, ` {"ARGS" : null , "args":{} } x`, `{"args":"\ud800","a":{}}`, `{}`, `{"args":1,}`, `{"a"}`, "{\"\xff\":1}", `[{}]`, `{"Args":1,"a":01}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		short, value, behind, err := split(text, "args", noRest)
		whole := err == nil && len(bytes.Trim(behind, " \t\r\n")) == 0
		is := json.Valid(text) && bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
		testkit.Need(t, whole == is, "%q: split says %v %q, encoding/json %v", text, err, behind, is)
		valid := json.Valid(text)
		testkit.Need(t, isJSON(text, noRest) == valid, "%q: is JSON: %v", text, valid)
		if !is {
			return
		}
		type message struct {
			A    any             `json:"a"`
			Args json.RawMessage `json:"args"`
		}
		var want, got message
		wrong, fails := json.Unmarshal(text, &want), json.Unmarshal(short, &got)
		if value != nil {
			got.Args = value
		}
		if (wrong == nil) != (fails == nil) || wrong == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v %v, want %+v %v", text, got, fails, want, wrong)
		}
	})
}
