package socket

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/testkit"
)

// checkRequest holds what every request of juggler.1 has.
func checkRequest(t *testing.T, message []byte, r request) {
	t.Helper()
	testkit.Want(t, r.id == "" || json.Valid([]byte(r.id)), "%q: id %s", message, r.id)
	if r.args != nil && r.content == broker.JSON && !json.Valid(r.args) {
		t.Errorf("%q: arguments %s", message, r.args)
	}
	if r.refused != nil {
		return
	}
	testkit.Want(t, kindOf(r.kind.String()) == r.kind && r.kind != unknownKind, "%q: kind %d", message, r.kind)
	if r.kind == Call && (r.id == "" || r.uri == "" || r.timeout < time.Millisecond || r.timeout > mostTimeout*time.Millisecond) {
		t.Errorf("%q: %+v", message, r)
	}
	testkit.Want(t, r.credit >= 0 && r.credit <= mostCredit, "%q: credit %d", message, r.credit)
}

// Whatever comes in, parsing neither panics nor makes of it what no client may send.
func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{
		`{"type":"call","id":1,"uri":"u","timeout":1.5,"credit":3,"args":[1]}`, `{"type":"sub","id":"\u0000ü","pattern":"a*"}`,
		`{"type":"auth","token":"t"}`, `{"id":1e3}`, `null`, `[]`, `{"type":"credit","id":0,"credit":1e300}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		r, err := parseJSON(message, noRest)
		if err == nil {
			checkRequest(t, message, r)
		}
	})
}

// schema is the Frame of proto/cabrank/socket/v1/socket.proto.
func schema(t testing.TB) protoreflect.MessageDescriptor {
	t.Helper()
	compiler := protocompile.Compiler{Resolver: &protocompile.SourceResolver{ImportPaths: []string{"../../proto"}}}
	files, err := compiler.Compile(context.Background(), "cabrank/socket/v1/socket.proto")
	testkit.Must(t, err)
	return files[0].Messages().ByName("Frame")
}

// What is read of a Frame is what protobuf reads, for a second writing of it is the same.
func FuzzParseProto(f *testing.F) {
	frame := schema(f)
	for _, seed := range []string{"\x08\x01\x10\x01\x22\x01u\x3a\x011\x48\x05\x50\x02", "\x08\x03\x1a\x01a\x32\x02a*", "\x08\x0d\x6a\x01t", "\x08\x02\x42\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		r, err := parseProto(message, noRest)
		m := dynamicpb.NewMessage(frame)
		wrong := proto.Unmarshal(message, m)
		if err != nil {
			testkit.Need(t, wrong != nil, "%x: %v, but protobuf reads it", message, err)
			return
		}
		checkRequest(t, message, r)
		if again, err := proto.Marshal(m); err == nil && wrong == nil && r.refused == nil {
			second, err := parseProto(again, noRest)
			if err != nil || second.kind != r.kind || second.id != r.id || second.uri != r.uri || second.channel != r.channel || second.pattern != r.pattern ||
				second.timeout != r.timeout || second.credit != r.credit || second.token != r.token || !bytes.Equal(second.args, r.args) {
				t.Errorf("%x: %+v, again %x: %+v, %v", message, r, again, second, err)
			}
		}
	})
}

// What is written is what protobuf reads.
func TestAppendProto(t *testing.T) {
	frame := schema(t)
	field := func(m protoreflect.Message, name protoreflect.Name) any {
		return m.Get(m.Descriptor().Fields().ByName(name)).Interface()
	}
	read := func(a answer) protoreflect.Message {
		t.Helper()
		m := dynamicpb.NewMessage(frame)
		testkit.Must(t, proto.Unmarshal(appendProto(nil, &a), m))
		testkit.Want(t, len(m.GetUnknown()) == 0, "%+v has fields that the schema has not", a)
		return m
	}
	m := read(answer{kind: Welcome, user: "u", ttl: 7, welcome: &welcome{connection: "c", ping: 1, auth: 2, limits: limits{1, 5, 2, 3, 4}}})
	limits := field(m, "limits").(protoreflect.Message)
	for name, want := range map[protoreflect.Name]any{"version": "juggler.1", "connection": "c", "ping": uint32(1), "auth": uint32(2), "user": "u", "ttl": uint64(7)} {
		testkit.Equal(t, field(m, name), want, "%s", name)
	}
	for name, want := range map[protoreflect.Name]any{"message": uint64(1), "calls": uint32(2), "subscriptions": uint32(3), "name": uint32(4), "events": uint64(5)} {
		testkit.Equal(t, field(limits, name), want, "limits.%s", name)
	}
	m = read(answer{kind: Res, id: "7", content: broker.Protobuf, args: []byte{1, 2}, more: true})
	testkit.Want(t, field(m, "number") == uint64(7) && bytes.Equal(field(m, "protobuf").([]byte), []byte{1, 2}) && field(m, "more") == true,
		"res: %v", m)
	m = read(answer{kind: Res, id: `"a"`, args: []byte(`{"error":{"code":-5,"message":"no"}}`)})
	failure := field(m, "error").(protoreflect.Message)
	if field(m, "text") != "a" || field(failure, "code") != int32(-5) || field(failure, "message") != "no" || len(field(m, "json").([]byte)) > 0 {
		t.Errorf("res: %v", m)
	}
	m = read(answer{kind: Evnt, id: "x", channel: "\xff", pattern: "*", args: []byte("\"\xff\"")})
	testkit.Want(t, field(m, "channel") == "\uFFFD" && field(m, "pattern") == "*" && utf8.Valid(field(m, "json").([]byte)), "evnt: %v", m)
	numbers := map[string]int32{}
	values := frame.Fields().ByName("type").Enum().Values()
	for i := range values.Len() {
		numbers[string(values.Get(i).Name())] = int32(values.Get(i).Number())
	}
	for kind := Call; kind <= Exp; kind++ {
		if name := kind.String(); name != "unknown" && numbers["TYPE_"+string(bytes.ToUpper([]byte(name)))] != int32(kind) {
			t.Errorf("%s is not %d in the schema", name, kind)
		}
	}
}

// Every message is JSON of the fields that the documentation has.
func FuzzAppendJSON(f *testing.F) {
	f.Add(uint64(1), "channel", "pattern", "message", []byte(`{"a": "<b>\u2028"}`), 404)
	f.Add(uint64(0), "\xff", "ü", "\"", []byte(`{"error":{"message":"x"}}`), 0)
	f.Add(uint64(0), "", "", "", []byte("\"\xff\""), -1)
	document, err := os.ReadFile("../../docs/juggler.md")
	testkit.Must(f, err)
	f.Fuzz(func(t *testing.T, id uint64, channel, pattern, message string, args []byte, code int) {
		if !json.Valid(args) {
			args = nil
		}
		for _, a := range []answer{
			{kind: Ack, user: channel, ttl: int64(id)},
			{kind: Nack, code: code, message: message},
			{kind: Res, args: args},
			{kind: Res, args: args, more: true},
			{kind: Res, args: broker.ErrorResult(&broker.CodeError{Code: code, Text: message})},
			{kind: Exp},
			{kind: Evnt, channel: channel, pattern: pattern, args: args},
			{kind: Sub, channel: channel},
			{kind: Unsub, pattern: pattern},
			{kind: Pong},
			{kind: Welcome, user: channel, welcome: &welcome{connection: message, ping: 1, auth: int64(id)}},
		} {
			a.id = numberID(id)
			got := appendJSON(nil, &a)
			var m map[string]json.RawMessage
			err := json.Unmarshal(got, &m)
			testkit.Need(t, err == nil && utf8.Valid(got), "%s: %v", got, err)
			for key := range m {
				testkit.Want(t, bytes.Contains(document, []byte("`"+key+"`")), "%s is not in docs/juggler.md", key)
			}
			testkit.Want(t, string(m["type"]) == `"`+a.kind.String()+`"`, "%s", got)
		}
	})
}

// An error of a function is what is nothing but that.
func TestFailure(t *testing.T) {
	for args, want := range map[string]string{
		`{"error":{"message":"x"}}`:         `{"message":"x"}`,
		`{ "error" : {"message":"","a":1}}`: `{"message":"","a":1}`,
		`{"error":{"message":7}}`:           "",
		`{"error":{"code":7}}`:              "",
		`{"error":"x"}`:                     "",
		`{"error":null}`:                    "",
		`{"error":{"message":"x"},"a":1}`:   "",
		`{"errors":{"message":"x"}}`:        "",
		`"error"`:                           "",
		`null`:                              "",
		``:                                  "",
	} {
		a := answer{kind: Res, args: json.RawMessage(args)}
		testkit.Equal(t, string(a.failure()), want, "%s", args)
	}
}

// A message in which all is wrong is refused for the first of it, and takes no more memory
// than its length does.
func TestManyFaults(t *testing.T) {
	const faults = 100_000
	message := bytes.Repeat([]byte{fieldJSON<<3 | 2, 1, 'x'}, faults)
	message = append(message, fieldNumber<<3, 7)
	r, err := parseProto(message, noRest)
	testkit.Want(t, err == nil && r.id == "7" && r.refused != nil && r.refused.Error() == "json: not valid JSON", "%+v %v", r, err)
}

func TestNoObject(t *testing.T) {
	for _, message := range []string{"null", " null\n", "7", `"x"`, "[]", "", "{"} {
		r, err := parseJSON([]byte(message), noRest)
		testkit.Want(t, err != nil, "%q: %+v", message, r)
	}
}
