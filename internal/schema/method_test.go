package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/testkit"
)

// kinds is a service that takes and gives a message with fields of all kinds.
func kinds(t testing.TB) *schema.Method {
	t.Helper()
	known := schema.New(schema.Options{Files: kindFiles(t)})
	m, err := known.Method(t.Context(), "/test.Kinds/Echo")
	testkit.Must(t, err)
	return m
}

// compacted is JSON without the blanks that protojson adds by chance.
func compacted(t testing.TB, text []byte) string {
	t.Helper()
	var b bytes.Buffer
	err := json.Compact(&b, text)
	testkit.Need(t, err == nil, "%s: %v", text, err)
	return b.String()
}

// What goes in as JSON comes out as the JSON that is documented.
func TestJSON(t *testing.T) {
	m := kinds(t)
	const empty = `{"text":"","count":0,"big":"0","flag":false,"bytes":"","color":"RED","list":[],"byName":{}}`
	with := func(old, changed string) string { return strings.Replace(empty, old, changed, 1) }
	for in, want := range map[string]string{
		"":                                empty,
		"null":                            empty,
		"{}":                              empty,
		`{"text":"a, \"b\": \\"}`:         with(`"text":""`, `"text":"a, \"b\": \\"`),
		`{"text":"é\u0000","other":{}}`:   with(`"text":""`, `"text":"é\u0000"`),
		`{"big":9007199254740993}`:        with(`"big":"0"`, `"big":"9007199254740993"`),
		`{"big":"9007199254740993"}`:      with(`"big":"0"`, `"big":"9007199254740993"`),
		`{"by_name":{"a":1}}`:             with(`"byName":{}`, `"byName":{"a":1}`),
		`{"color":"BLUE"}`:                with(`RED`, `BLUE`),
		`{"color":"GREEN"}`:               empty, // passed over, as fields are
		`{"color":1}`:                     with(`RED`, `BLUE`),
		`{"bytes":"AAE="}`:                with(`"bytes":""`, `"bytes":"AAE="`),
		`{"bytes":"AAE"}`:                 with(`"bytes":""`, `"bytes":"AAE="`),
		`{"maybe":0}`:                     with(`,"list"`, `,"maybe":0,"list"`),
		`{"list":[{"flag":true}]}`:        with(`[]`, `[`+with(`false`, `true`)+`]`),
		`{"lasts":"1.5s"}`:                with(`"byName":{}`, `"byName":{},"lasts":"1.500s"`),
		`{"any":{"@type":"t/test.Kind"}}`: with(`"byName":{}`, `"byName":{},"any":{"@type":"t/test.Kind",`+empty[1:]),
	} {
		encoded, err := m.AppendRequest([]byte("x"), []byte(in))
		if err != nil || encoded[0] != 'x' {
			t.Errorf("%s: %v", in, err)
			continue
		}
		out, err := m.AppendAnswer([]byte(" "), encoded[1:])
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		testkit.Equal(t, string(out[1:]), want, "%s", in)
	}
}

// Errors name the field.
func TestFaults(t *testing.T) {
	m := kinds(t)
	for in, want := range map[string]string{
		`{"count":"x"}`:         "count",
		`{"count":1.5}`:         "count",
		`{"list":[{"flag":1}]}`: "flag",
		`{"text":1}`:            "text",
		`[1]`:                   "unexpected token",
		`{`:                     "unexpected",
		`{"any":{"@type":"t/test.Lacking","missing":{"a":1}}}`: "test.Missing",
		`{"any":{"@type":"t/test.None"}}`:                      "test.None",
	} {
		_, err := m.AppendRequest(nil, []byte(in))
		if err == nil || !strings.HasPrefix(err.Error(), "test.Kind: ") || !strings.Contains(err.Error(), want) || strings.ContainsAny(err.Error(), "\n\u00a0") {
			t.Errorf("%s: %v", in, err)
		}
	}
	_, err := m.AppendAnswer(nil, []byte{0xff})
	testkit.Want(t, err != nil, "bytes that are no message")
}

// What is deep is refused: 400 KB of one Any in another would take seconds, which no
// deadline ends.
func TestDepth(t *testing.T) {
	m := kinds(t)
	nested := func(deep int) []byte {
		return []byte(`{"any":` + strings.Repeat(`{"@type":"t/google.protobuf.Any","value":`, deep) + `{}` + strings.Repeat(`}`, deep) + `}`)
	}
	encoded, err := m.AppendRequest(nil, nested(40))
	testkit.Must(t, err)
	_, err = m.AppendAnswer(nil, encoded)
	testkit.Must(t, err)
	for _, in := range []string{string(nested(9_000)), strings.Repeat(`{"list":[`, 9_000) + strings.Repeat(`]}`, 9_000)} {
		began := time.Now()
		_, err = m.AppendRequest(nil, []byte(in))
		testkit.Want(t, err != nil, "%d bytes of %.20s... were taken", len(in), in)
		took := time.Since(began)
		testkit.Want(t, took <= 30*time.Second, "%.20s... took %s", in, took)
	}
}

// What a type needs is looked at once, however many of it a message has: a large API is
// some hundreds of types that know each other.
func TestManyOfALargeType(t *testing.T) {
	var source strings.Builder
	source.WriteString("syntax = \"proto3\"; package large; import \"google/protobuf/any.proto\";")
	source.WriteString("message In { repeated google.protobuf.Any all = 1; } service S { rpc Do(In) returns (In); }")
	const kinds = 300
	for i := range kinds {
		fmt.Fprintf(&source, "message M%d {", i)
		for field := range 20 {
			fmt.Fprintf(&source, "M%d f%d = %d;", (i+field+1)%kinds, field, field+1)
		}
		source.WriteString("}")
	}
	encoded, err := proto.Marshal(setOf(t, source.String()))
	testkit.Must(t, err)
	m, err := schema.New(schema.Options{Files: filesOf(t, encoded)}).Method(t.Context(), "/large.S/Do")
	testkit.Must(t, err)
	one := `{"@type":"t/large.M0"}`
	began := time.Now()
	_, err = m.AppendRequest(nil, []byte(`{"all":[`+strings.Repeat(one+",", 30_000)+one+`]}`))
	testkit.Must(t, err)
	took := time.Since(began)
	testkit.Want(t, took <= 30*time.Second, "it took %s", took)
}

// Whatever JSON comes, and whatever bytes: nothing panics, and what was taken once can
// be given back.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{}`, `{"list":[{"byName":{"a":1}}]}`, `{"any":{"@type":"x/test.Kind","text":"a"}}`, `{"lasts":"1s"}`, `"`} {
		f.Add([]byte(seed))
	}
	m := kinds(f)
	f.Fuzz(func(t *testing.T, in []byte) {
		if out, err := m.AppendAnswer(nil, in); err == nil && (!json.Valid(out) || compacted(t, out) != string(out)) {
			t.Errorf("%q is no JSON without blanks", out)
		}
		encoded, err := m.AppendRequest(nil, in)
		if err != nil {
			testkit.Want(t, !strings.ContainsAny(err.Error(), "\r\n") && len(err.Error()) <= 300, "%q", err)
			return
		}
		out, err := m.AppendAnswer(nil, encoded)
		testkit.Need(t, err == nil, "%q: %v", encoded, err)
		again, err := m.AppendRequest(nil, out)
		testkit.Need(t, err == nil, "%s: %v", out, err)
		back, err := m.AppendAnswer(nil, again)
		testkit.Want(t, err == nil && sameJSON(t, out, back), "%s\n%s\n%v", out, back, err)
	})
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		return false
	}
	first, _ := json.Marshal(x)
	second, _ := json.Marshal(y)
	return bytes.Equal(first, second)
}

// Whatever file of descriptors comes: an error of one line, or methods.
func FuzzReadFiles(f *testing.F) {
	f.Add([]byte("\n\x01a"))
	f.Add(kindSet(f))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		set := &descriptorpb.FileDescriptorSet{}
		if proto.Unmarshal(encoded, set) != nil {
			return
		}
		_, err := schema.Link(set)
		testkit.Want(t, err == nil || !strings.ContainsAny(err.Error(), "\r\n"), "%q", err)
	})
}

func BenchmarkJSON(b *testing.B) {
	m := kinds(b)
	in := []byte(`{"text":"hello","count":7}`)
	encoded, err := m.AppendRequest(nil, in)
	testkit.Must(b, err)
	b.Run("request", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = m.AppendRequest(nil, in)
		}
	})
	b.Run("answer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = m.AppendAnswer(nil, encoded)
		}
	})
}
