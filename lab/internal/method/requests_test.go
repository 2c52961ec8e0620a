package method_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/method"
)

// wantSame compares an encoded message with JSON that protojson reads.
func wantSame(t *testing.T, types *dynamicpb.Types, empty *dynamicpb.Message, encoded []byte, want string) {
	t.Helper()
	wanted := proto.Clone(empty)
	err := (protojson.UnmarshalOptions{Resolver: types}).Unmarshal([]byte(want), wanted)
	testkit.Need(t, err == nil, "%s: %v", want, err)
	got := proto.Clone(empty)
	err = (proto.UnmarshalOptions{Resolver: types}).Unmarshal(encoded, got)
	testkit.Need(t, err == nil, "%x: %v", encoded, err)
	// As JSON, where the messages in an Any have their fields in order, too.
	options := protojson.MarshalOptions{Resolver: types}
	testkit.Want(t, options.Format(got) == options.Format(wanted), "got  %v\nwant %v", got, wanted)
}

// Every kind of field, with and without placeholders: what is sent is what protojson
// makes of the text with the values in it.
func TestRequests(t *testing.T) {
	m, all, types := kinds(t, "Unary"), messageNamed(t, "kinds.proto", "All"), dynamicpb.NewTypes(knownFiles(t))
	for _, tc := range []struct{ data, want string }{
		{`{}`, `{}`},
		{`{"text": "a\u007b{b}}", "an_int32": 5, "aBool": true, "color": "GREEN", "raw": "AQID"}`,
			`{"text": "a{{b}}", "anInt32": 5, "a_bool": true, "color": 2, "raw": "AQID"}`},
		{`{"wait": "1.5s", "at": "2026-01-02T03:04:05Z", "free": {"a": [1, null, "x"]}, "wrapped": ""}`,
			`{"wait": "1.5s", "at": "2026-01-02T03:04:05Z", "free": {"a": [1, null, "x"]}, "wrapped": ""}`},
		{`{"text": "user-{{.RequestNumber}}"}`, `{"text": "user-41"}`},
		{`{"text": "{{ .RequestNumber }}{{.RequestNumber}}\"{{.MessageNumber}}é"}`, `{"text": "4141\"0é"}`},
		{`{"text": "󰀀{{.RequestNumber}}􀀁"}`, `{"text": "󰀀41􀀁"}`},
		{`{"an_int32": {{.RequestNumber}}, "a_sint32": {{randomInt -7 -6}}, "a_uint32": {{randomInt 4294967295 4294967296}}}`,
			`{"an_int32": 41, "a_sint32": -7, "a_uint32": 4294967295}`},
		{`{"a_sfixed32": {{randomInt -9 -8}}, "a_fixed32": {{.RequestNumber}}, "a_float": {{.RequestNumber}}, "a_double": {{randomInt -3 -2}}}`,
			`{"a_sfixed32": -9, "a_fixed32": 41, "a_float": 41, "a_double": -3}`},
		{`{"an_int64": {{randomInt -9223372036854775808 -9223372036854775807}}, "a_sint64": {{randomInt -5 -4}}, "a_uint64": {{randomInt 9223372036854775806 9223372036854775807}}}`,
			`{"an_int64": "-9223372036854775808", "a_sint64": -5, "a_uint64": "9223372036854775806"}`},
		{`{"an_int64": "{{.RequestNumber}}", "a_sfixed64": "{{randomInt -5 -4}}", "a_fixed64": "{{.RequestNumber}}", "text": "{{.RequestNumber}}"}`,
			`{"an_int64": 41, "a_sfixed64": -5, "a_fixed64": 41, "text": "41"}`},
		{`{"color": {{randomInt 2 3}}, "colors": [1, {{randomInt 1 2}}, "RED"]}`, `{"color": 2, "colors": [1, 1, 1]}`},
		{`{"inner": {"name": "a", "next": {"next": {"name": "{{.RequestNumber}}", "count": 7}}}, "a_bool": true}`,
			`{"inner": {"name": "a", "next": {"next": {"name": "41", "count": 7}}}, "a_bool": true}`},
		{`{"numbers": [1, {{.RequestNumber}}, 300], "loose": [{{.RequestNumber}}, 2], "doubles": [1.5, {{.RequestNumber}}]}`,
			`{"numbers": [1, 41, 300], "loose": [41, 2], "doubles": [1.5, 41]}`},
		{`{"texts": ["a", "{{.RequestNumber}}", ""], "inners": [{}, {"count": {{.RequestNumber}}}, {"name": "z"}]}`,
			`{"texts": ["a", "41", ""], "inners": [{}, {"count": 41}, {"name": "z"}]}`},
		{`{"by_name": {"x": {{.RequestNumber}}, "a": 1, "": 2}, "by_number": {"-3": {"name": "{{.RequestNumber}}"}, "4": {}}}`,
			`{"by_name": {"x": 41, "a": 1, "": 2}, "by_number": {"-3": {"name": "41"}, "4": {}}}`},
		{`{"left": "{{.RequestNumber}}", "maybe": {{.MessageNumber}}}`, `{"left": "41", "maybe": 0}`},
		{`{"right": "{{.RequestNumber}}"}`, `{"right": 41}`},
		{`{"wrapped": "w{{.RequestNumber}}", "wrapped_number": "{{.RequestNumber}}"}`, `{"wrapped": "w41", "wrapped_number": 41}`},
		{`{"free": {"a": ["{{.RequestNumber}}", {{.RequestNumber}}], "b": {"c": true}}, "value": {{.RequestNumber}}}`,
			`{"free": {"a": ["41", 41], "b": {"c": true}}, "value": 41}`},
		{`{"any": {"@type": "x/kinds.v1.Inner", "name": "{{.RequestNumber}}", "count": {{.RequestNumber}}, "next": {"count": 1}}}`,
			`{"any": {"@type": "x/kinds.v1.Inner", "name": "41", "count": 41, "next": {"count": 1}}}`},
		{`{"any": {"@type": "x/google.protobuf.Duration", "value": "3s"}, "text": "{{.RequestNumber}}"}`,
			`{"any": {"@type": "x/google.protobuf.Duration", "value": "3s"}, "text": "41"}`},
		{`{"any": {"@type": "x/google.protobuf.StringValue", "value": "{{.RequestNumber}}"}}`,
			`{"any": {"@type": "x/google.protobuf.StringValue", "value": "41"}}`},
		{"\n{\n \"inner\":\n{\"name\": \"" + strings.Repeat("long ", 50) + "{{.RequestNumber}}\"}}", `{"inner": {"name": "` + strings.Repeat("long ", 50) + `41"}}`},
		{`{"inner": {"next": {"next": {"name": "` + strings.Repeat("y", 17000) + `{{.RequestNumber}}"}}}}`, `{"inner": {"next": {"next": {"name": "` + strings.Repeat("y", 17000) + `41"}}}}`},
	} {
		got := requests(t, m, tc.data).Messages(41)
		testkit.Need(t, len(got) == 1, "%s: %d messages", tc.data, len(got))
		wantSame(t, types, all, got[0], tc.want)
		written := asJSON(t, m, tc.data).Messages
		back := proto.Clone(all)
		if err := (protojson.UnmarshalOptions{Resolver: types}).Unmarshal(written(41)[0], back); err != nil {
			t.Fatalf("%s: %v", written(41)[0], err)
		}
		encoded, err := proto.Marshal(back)
		testkit.Must(t, err)
		wantSame(t, types, all, encoded, tc.want)
	}
}

func asJSON(t *testing.T, m *method.Method, data string) *method.Requests {
	t.Helper()
	r, err := m.Requests(method.Data{Name: "--data", Text: []byte(data), Seed: 7, JSON: true})
	testkit.Must(t, err)
	return r
}

// JSON has no spaces, and a call without placeholders is written once.
func TestRequestsAsJSON(t *testing.T) {
	written := asJSON(t, kinds(t, "Chat"), `[[{"text": "a b", "anInt32": 5}, {}], [{"text": "{{.RequestNumber}}"}]]`).Messages
	testkit.Equal(t, fmt.Sprintf("%s", written(0)), `[{"anInt32":5,"text":"a b"} {}]`, "written")
	testkit.Want(t, &written(0)[0][0] == &written(2)[0][0], "it is written twice")
	testkit.Equal(t, string(written(3)[0]), `{"text":"3"}`, "written")
}

func TestRequestsOfOldProto(t *testing.T) {
	m := fromFile(t, "old.proto", "old.v1.Old/Call")
	wantSame(t, dynamicpb.NewTypes(knownFiles(t)), messageNamed(t, "old.proto", "Request"),
		requests(t, m, `{"id": "{{.RequestNumber}}", "part": {"name": "{{.RequestNumber}}", "size": 3}, "[old.v1.note]": "n{{.RequestNumber}}"}`).Messages(9)[0],
		`{"id": "9", "part": {"name": "9", "size": 3}, "[old.v1.note]": "n9"}`)
	_, err := m.Requests(method.Data{Name: "--data", Text: []byte(`{}`)})
	wantLine(t, "required", err, "--data: required field old.v1.Request.id not set")
}

// Requests whose message is written as something else than an object.
func TestRequestsOfPlainValues(t *testing.T) {
	if got := requests(t, kinds(t, "Text"), `["a", "b{{.RequestNumber}}"]`); string(got.Messages(0)[0]) != "\x0a\x01a" || string(got.Messages(3)[0]) != "\x0a\x02b3" {
		t.Errorf("%q %q", got.Messages(0), got.Messages(3))
	}
	if got := requests(t, kinds(t, "Lists"), `[[true], []]`); string(got.Messages(0)[0]) != "\x0a\x02\x20\x01" || len(got.Messages(1)[0]) != 0 {
		t.Errorf("%q %q", got.Messages(0), got.Messages(1))
	}
}

// Several documents are used in turn, however they stand beside each other.
func TestInTurn(t *testing.T) {
	m := kinds(t, "Unary")
	for _, data := range []string{
		`[{"an_int32": 1}, {"an_int32": 2}, {"an_int32": {{randomInt 3 4}}}]`,
		"{\"an_int32\": 1}\n{\"an_int32\": 2}\n{\"an_int32\": {{randomInt 3 4}}}\n",
		`{"an_int32": 1}{"an_int32": 2} [{"an_int32": 3}]`,
	} {
		r := requests(t, m, data)
		for n := range uint64(9) {
			got, want := r.Messages(n), []byte{0x10, byte(n%3 + 1)}
			testkit.Want(t, len(got) == 1 && bytes.Equal(got[0], want), "%s: call %d: %x, want %x", data, n, got, want)
		}
	}
}

// A caller that streams sends a list of messages.
func TestStreams(t *testing.T) {
	m := kinds(t, "Chat")
	for _, tc := range []struct {
		data  string
		count int
		want  [][]int // the number in each message, by call
	}{
		{`{"an_int32": 1}`, 0, [][]int{{1}, {1}}},
		{`{"an_int32": 1}`, 3, [][]int{{1, 1, 1}}},
		{`[{"an_int32": 1}, {"an_int32": {{.MessageNumber}}}]`, 0, [][]int{{1, 1}, {1, 1}}},
		{`[{"an_int32": 9}, {"an_int32": {{.MessageNumber}}}]`, 5, [][]int{{9, 1, 9, 3, 9}}},
		{`[{"an_int32": 9}, {"an_int32": 8}]`, 1, [][]int{{9}, {9}}},
		{`[[{"an_int32": 1}, {"an_int32": 2}], [], [{"an_int32": {{randomInt 3 4}}}]]`, 0, [][]int{{1, 2}, {}, {3}, {1, 2}}},
		{"[{\"an_int32\": 1}]\n[{\"an_int32\": 2}, {\"an_int32\": 3}]", 0, [][]int{{1}, {2, 3}, {1}}},
		{`[]`, 0, [][]int{{}}},
	} {
		r, err := m.Requests(method.Data{Name: "--data", Text: []byte(tc.data), Messages: tc.count})
		testkit.Need(t, err == nil, "%s: %v", tc.data, err)
		for n, want := range tc.want {
			got := r.Messages(uint64(n))
			testkit.Need(t, len(got) == len(want), "%s, %d: call %d has %d messages, want %d", tc.data, tc.count, n, len(got), len(want))
			for i := range got {
				testkit.Want(t, bytes.Equal(got[i], []byte{0x10, byte(want[i])}),
					"%s, %d: call %d: message %d is %x, want %d", tc.data, tc.count, n, i, got[i], want[i])
			}
		}
	}
}

// valueOf returns the text of the first field of a request.
func valueOf(t *testing.T, all *dynamicpb.Message, encoded []byte, field string) string {
	t.Helper()
	m := decoded(t, all, encoded).ProtoReflect()
	return m.Get(m.Descriptor().Fields().ByName(protoreflect.Name(field))).String()
}

func TestPlaceholders(t *testing.T) {
	m, all := kinds(t, "Unary"), messageNamed(t, "kinds.proto", "All")
	const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	for data, want := range map[string]string{
		"{{.UUID}}":               "^" + uuid + "$",
		"{{newUUID}}":             "^" + uuid + "$",
		"a{{ randomString 12 }}b": "^a[a-zA-Z0-9]{12}b$",
		"{{randomInt 5 7}}":       "^[56]$",
		"{{randomInt -2 2}}":      "^(-2|-1|0|1)$",
		"{{randomInt\t1\t1000}}":  "^[0-9]{1,3}$",
		"{{.UUID}} {{.UUID}}":     "^(" + uuid + ") (" + uuid + ")$",
	} {
		r := requests(t, m, `{"text": "`+data+`"}`)
		seen := map[string]bool{}
		for n := range uint64(200) {
			got := valueOf(t, all, r.Messages(n)[0], "text")
			testkit.Need(t, regexp.MustCompile(want).MatchString(got), "%s: %q", data, got)
			seen[got] = true
		}
		if many := strings.Contains(data, "UUID") || strings.Contains(data, "String"); many && len(seen) != 200 || len(seen) < 2 {
			t.Errorf("%s: %d different values in 200 calls", data, len(seen))
		}
	}
	two := strings.Fields(valueOf(t, all, requests(t, m, `{"text": "{{.UUID}} {{.UUID}} {{newUUID}} {{newUUID}}"}`).Messages(0)[0], "text"))
	slices.Sort(two)
	testkit.Want(t, len(slices.Compact(two)) == 3, "one UUID for the call, and two others: %q", two)
}

// Both arms of an experiment send the same; another seed sends something else. Nor do
// the values of neighbors have to do with each other.
func TestSeeds(t *testing.T) {
	m := kinds(t, "Upload")
	data := `[{"text": "{{randomString 20}} {{newUUID}} {{.UUID}}"}, {"an_int64": "{{randomInt 0 1000000000}}"}]`
	one, same := requests(t, m, data), requests(t, m, data)
	other, err := m.Requests(method.Data{Text: []byte(data), Seed: 8})
	testkit.Must(t, err)
	for n := range uint64(100) {
		got, want := fmt.Sprint(one.Messages(n)), fmt.Sprint(same.Messages(n))
		testkit.Need(t, got == want, "call %d: %s and %s", n, got, want)
		if fmt.Sprint(one.Messages(n)) == fmt.Sprint(other.Messages(n)) || fmt.Sprint(one.Messages(n)) == fmt.Sprint(one.Messages(n+1)) {
			t.Fatalf("call %d: another seed or number gives the same", n)
		}
	}
}

// Random numbers are even over their range, and two of a request, or of neighboring
// calls, have nothing to do with each other. The bound is the value of chi-square with
// 99 degrees of freedom that one in 100,000 exceeds; the seed is fixed.
func TestRandomIsEven(t *testing.T) {
	const calls, bound = 20_000, 168
	m, all := kinds(t, "Unary"), messageNamed(t, "kinds.proto", "All")
	r := requests(t, m, `{"numbers": [{{randomInt 0 100}}, {{randomInt 0 10}}, {{randomInt 0 10}}]}`)
	var alone, within, between [100]int
	before := int64(0)
	for n := range uint64(calls) {
		got := decoded(t, all, r.Messages(n)[0]).ProtoReflect()
		list := got.Get(got.Descriptor().Fields().ByName("numbers")).List()
		alone[list.Get(0).Int()]++
		within[10*list.Get(1).Int()+list.Get(2).Int()]++
		between[10*before+list.Get(1).Int()]++
		before = list.Get(1).Int()
	}
	for name, cells := range map[string][100]int{"one": alone, "two of a call": within, "of two calls": between} {
		sum := 0.0
		for _, seen := range cells {
			sum += (float64(seen) - calls/100) * (float64(seen) - calls/100) / (calls / 100)
		}
		testkit.Want(t, sum <= bound, "%s: chi-square %.0f", name, sum)
	}
}

// A template without placeholders costs nothing for each call. Any number of goroutines may ask.
func TestRequestsAreCheapAndShared(t *testing.T) {
	m := kinds(t, "Unary")
	ready := requests(t, m, `[{"text": "a"}, {"text": "b"}]`)
	filled := requests(t, m, `{"text": "{{.UUID}} {{randomString 30}} {{.RequestNumber}}", "an_int64": "{{randomInt 1 100}}", "inner": {"name": "{{newUUID}}"}}`)
	if got := testing.AllocsPerRun(100, func() { ready.Messages(1) }); got > 0 {
		t.Errorf("%.1f allocations", got)
	}
	var done sync.WaitGroup
	for range 4 {
		done.Go(func() {
			for n := range uint64(500) {
				_ = append(ready.Messages(n), filled.Messages(n)...)
			}
		})
	}
	done.Wait()
}

// After 2,147,483,647 calls their number begins again, so that it fits into 32 bits.
func TestNumbersFitIn32Bits(t *testing.T) {
	r := requests(t, kinds(t, "Unary"), `{"an_int32": {{.RequestNumber}}}`)
	got := r.Messages(1<<31 + 5)[0]
	testkit.Want(t, bytes.Equal(got, []byte{0x10, 5}), "%x", got)
}

// Bad input gets one line: where, what, and what to write instead.
func TestRequestsRefuse(t *testing.T) {
	m := kinds(t, "Unary")
	for _, tc := range []struct{ data, want string }{
		{``, `--data: there is no request in it; {} is an empty one`},
		{` [] `, `--data: there is no request in it; {} is an empty one`},
		{`{`, `--data:1:2: not JSON: it ends in the middle of a value`},
		{`[{}`, `--data:1:4: not JSON: `},
		{`{"text": 'a'}`, `--data:1:10: not JSON: invalid character '\''`},
		{"{\n  \"text\": \"a\"\n  \"raw\": \"\"}", `--data:3:3: not JSON: invalid character '"' after object key:value pair`},
		{`{} x`, `--data:1:4: not JSON: invalid character 'x'`},
		{`5`, `--data:1:1: unexpected token 5`},
		{`{"txt": "a"}`, `--data:1:2: unknown field "txt"`},
		{`{"inner": {"next": {"nmae": 1}}}`, `--data:1:21: unknown field "nmae"`},
		{"{\"inners\": [{}, {\n\"nothing\": 1}]}", `--data:2:1: unknown field "nothing"`},
		{`{"by_number": {"3": {"nmae": 1}}}`, `--data:1:22: unknown field "nmae"`},
		{`{"text": 5}`, `--data:1:10: invalid value for string field text: 5`},
		{`{"numbers": [1, "x"]}`, `--data:1:17: invalid value for int32 field numbers: "x"`},
		{`{"numbers": 1}`, `--data:1:13: unexpected token 1`},
		{`{"inners": {"name": "a"}}`, `--data:1:12: unexpected token {`},
		{`{"inner": "a"}`, `--data:1:11: unexpected token "a"`},
		{`{"color": "GRENE"}`, `--data:1:11: invalid value for enum field color: "GRENE"`},
		{`{"by_name": {"a": "b"}}`, `--data:1:19: invalid value for int64 field value: "b"`},
		{`{"by_name": []}`, `--data:1:13: unexpected token [`},
		{`{"an_int32": 3000000000}`, `--data:1:14: invalid value for int32 field anInt32: 3000000000`},
		{`{"wait": "5 minutes"}`, `--data:1:10: invalid google.protobuf.Duration value "5 minutes"`},
		{`{"raw": "*"}`, `--data:1:9: invalid value for bytes field raw: "*"`},
		{`{"text": "a", "text": "b"}`, `--data:1:15: duplicate field "text"`},
		{`{"left": "a", "right": 1}`, `--data:1:15: error parsing "right", oneof kinds.v1.All.choice is already set`},
		{`{"any": {"@type": "x/no.Such"}}`, `--data:1:19: unable to resolve "x/no.Such"`},
		{`{"any": {"name": "x"}}`, `--data:1:9: missing "@type" field`},
		{`[{}, {"é": "é", "txt": 1}]`, `--data:1:7: unknown field "é"`},
		{`{"text": "é{{.RequestNumber}}", "txt": 1}`, `--data:1:16: unknown field "txt"`},

		// The least or the greatest value does not fit.
		{`{"text": {{.RequestNumber}}}`, `--data:1:10: invalid value for string field text: 0`},
		{`{"{{.RequestNumber}}": 1}`, `--data:1:2: unknown field "0"`},
		{`{"by_number": {"a{{.RequestNumber}}": {}}}`, `--data:1:16: invalid value for int32 key: "a0"`},
		{`{"by_name": {"{{.RequestNumber}}": 1, "0": 2}}`, `--data:1:22: duplicate map key "0"`},
		{`{"a_bool": {{randomInt 0 2}}}`, `--data:1:12: invalid value for bool field aBool: 0`},
		{`{"an_int32": {{randomInt 0 2147483649}}}`, `--data:1:14: invalid value for int32 field anInt32: 2147483648`},
		{`{"an_int32": {{exponential 3}}}`, `--data:1:14: invalid value for int32 field anInt32: 110.`},
		{"{}\n{}\n {\"numbers\": [1, {{randomInt 0 2147483649}}]}", `--data:3:18: invalid value for int32 field numbers: 2147483648`},
		{`{"a_uint64": "{{randomInt -1 2}}"}`, `--data:1:14: invalid value for uint64 field aUint64: "-1"`},
		{`{"inner": {{.RequestNumber}}}`, `--data:1:11: unexpected token 0`},

		{`{"text": "{{.Number}}"}`, `--data:1:11: no placeholder is called .Number; there are: .RequestNumber, `},
		{`{"text": "{{}}"}`, `--data:1:11: an empty placeholder; there are: `},
		{`{"text": "{{.UUID"}`, `--data:1:11: {{ begins a placeholder, and there is no }} on its line`},
		{"{\"text\": \"{{.UUID\n}}\"}", `--data:1:11: {{ begins a placeholder`},
		{`{{"text": 1}}`, `--data:1:1: no placeholder is called "text":`},
		{`{"text": "{{.TimestampUnix}}"}`, `--data:1:11: {{.TimestampUnix}}: there is no time in requests, so that two runs send the same; there are: `},
		{`{"text": "{{randomInt 5}}"}`, `--data:1:11: randomInt takes 2 numbers, not 1`},
		{`{"text": "{{randomInt 5 5}}"}`, `--data:1:11: {{randomInt 5 5}}: there is no number from 5 up to and without 5`},
		{`{"text": "{{randomInt a 5}}"}`, `--data:1:11: randomInt: "a" is not a whole number of 64 bits`},
		{`{"text": "{{randomString 0}}"}`, `--data:1:11: {{randomString 0}}: write a length from 1 to 1048576`},
		{`{"any": {"@type": "x/kinds.v1.Inner", "nmae": "x"}}`, `--data:1:39: unknown field "nmae"`},
		{`{"by_number": {"x": {}}}`, `--data:1:16: invalid value for int32 key: "x"`},
		{`{"text": "{{ if .X }}a{{ end }}"}`, `--data:1:11: no placeholder is called if; there are: `},
		{`{"text": "\ud800"}`, `--data: unexpected EOF`},
		{`{"text": "\u00{{.RequestNumber}}"}`, `--data:1:10: invalid escape code`},
		{`{"any": {"name": "{{.UUID}}", "@type": "x/no.Such"}}`, `--data:1:67: unable to resolve "x/no.Such"`},
	} {
		_, err := m.Requests(method.Data{Name: "--data", Text: []byte(tc.data)})
		wantLine(t, tc.data, err, tc.want)
	}
}

func TestRequestsRefuseCounts(t *testing.T) {
	for _, tc := range []struct {
		method, data string
		count        int
		want         string
	}{
		{"Unary", `{}`, 2, "/kinds.v1.Kinds/Unary is unary: a call has one request message, not 2"},
		{"Download", `{}`, 2, "/kinds.v1.Kinds/Download is server stream: "},
		{"Upload", `{}`, -1, "-1 messages in a call: at most 100000 are allowed"},
		{"Upload", `{}`, 100_001, "100001 messages in a call: at most 100000 are allowed"},
		{"Upload", `[]`, 5, "f.json: a call without a message cannot be repeated to have 5"},
		{"Unary", strings.Repeat(" ", 65<<20), 0, "f.json: has 68157440 bytes, at most 67108864 are allowed"},
		{"Unary", strings.Repeat(`{"next": `, 5000) + `{}` + strings.Repeat("}", 5000), 0, `f.json:1:2: unknown field "next"`},
		{"Unary", `{"inner": ` + strings.Repeat(`{"next": `, 5000) + `{}` + strings.Repeat("}", 5001), 0, "f.json: exceeded max recursion depth"},
		{"Unary", `{"texts": ["` + strings.Repeat("{{.UUID}}", 10_001) + `"]}`, 0, "f.json:1:1: a request with more than 10000 placeholders"},
	} {
		_, err := kinds(t, tc.method).Requests(method.Data{Name: "f.json", Text: []byte(tc.data), Messages: tc.count})
		wantLine(t, tc.data, err, tc.want)
	}
	requests(t, kinds(t, "Unary"), `{"inner": {"next": `+strings.Repeat(`{"next": `, 900)+`{"name": "{{.UUID}}"}`+strings.Repeat("}", 902))
}

// A value between the least and the greatest that makes no request leaves a call without one.
func TestRequestsThatCannotBe(t *testing.T) {
	r := requests(t, kinds(t, "Unary"), `{"by_name": {"{{randomInt 0 9}}": 1, "5": 2}}`)
	none := 0
	for n := range uint64(200) {
		if r.Messages(n) == nil {
			none++
		}
	}
	testkit.Want(t, none >= 5 && none <= 60, "%d of 200 calls have none, want one in nine", none)
}
