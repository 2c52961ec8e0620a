package method

import (
	"bytes"
	"context"
	"strings"
	"testing"

	pb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Whatever the text is, reading it ends in an error of one line, or in requests that
// are what protojson makes of the text with the values in place of the placeholders.
func FuzzTemplate(f *testing.F) {
	for _, data := range []string{
		`{}`, `[{"text": "{{.UUID}}"}, {"an_int32": {{randomInt -5 5}}}]`, `{{`, `{"text": "\"{{newUUID}}`,
		`{"a_double": {{mix 5:90 50:10}}, "a_float": {{uniform 1 2}}, "an_int32": {{exponential 10}}}`,
		`{"numbers": [1, {{.RequestNumber}}], "by_name": {"a": "{{randomInt 1 9}}"}, "any": {"@type": "x/kinds.v1.Inner", "name": "{{randomString 3}}"}}`,
		`{"free": {"a": ["{{.MessageNumber}}", {{.RequestNumber}}]}, "inner": {"next": {"name": "é{{.UUID}}"}}, "a_float": {{randomInt 1 9}}}`,
		"[[{}, {\"left\": \"{{.UUID}}\"}], []]\n{\"wait\": \"1s\"}", `{"inners": [{}, {"count": "{{.RequestNumber}}"}], "colors": [{{randomInt 0 3}}]}`,
	} {
		f.Add(data, uint64(1), false)
		f.Add(data, uint64(1)<<40, true)
	}
	m := map[bool]*Method{}
	for streams, name := range map[bool]string{false: "kinds.v1.Kinds/Unary", true: "kinds.v1.Kinds/Upload"} {
		var err error
		if m[streams], err = FromFiles(f.Context(), Files{Names: []string{"testdata/kinds.proto"}}, name); err != nil {
			f.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, data string, number uint64, streams bool) {
		m := m[streams]
		r, err := m.Requests(Data{Name: "f", Text: []byte(data), Seed: 3})
		if err != nil {
			testkit.Want(t, !strings.ContainsAny(err.Error(), "\n\r\x1b") && strings.HasPrefix(err.Error(), "f:"), "%q", err)
			return
		}
		s, err := readTemplate("f", []byte(data))
		testkit.Must(t, err)
		lists, err := m.lists(s)
		testkit.Must(t, err)
		list, got := lists[number%uint64(len(lists))], r.Messages(number)
		if got == nil {
			return // a value between the least and the greatest
		}
		testkit.Need(t, len(list) == len(got), "%d messages of %d documents", len(got), len(list))
		for i, d := range list {
			check(t, m, d, spot{seed: 3, call: number, message: uint64(i)}, got[i])
		}
	})
}

// Whatever a server describes, it ends in an error of one line, or in a method whose
// requests can be made.
func FuzzDescribed(f *testing.F) {
	known, err := protodesc.NewFile(protodesc.ToFileDescriptorProto(pb.File_grpc_reflection_v1_reflection_proto), nil)
	testkit.Must(f, err)
	whole, err := proto.Marshal(protodesc.ToFileDescriptorProto(known))
	testkit.Must(f, err)
	f.Add(whole)
	f.Add([]byte("\x0a\x01a"))
	n := name{service: "grpc.reflection.v1.ServerReflection", method: "ServerReflectionInfo"}
	f.Fuzz(func(t *testing.T, encoded []byte) {
		r := schema.NewReflection(func(context.Context, string) (schema.Stream, error) { return describes{encoded}, nil })
		defer r.Close()
		set, err := r.Files(t.Context(), n.service)
		if err != nil {
			return
		}
		files, err := schema.Link(set)
		if err != nil {
			testkit.Want(t, !strings.ContainsAny(err.Error(), "\n\r\x1b"), "%q", err)
			return
		}
		m, err := n.find(files)
		if err != nil {
			return
		}
		made, err := m.Requests(Data{Name: "f", Text: []byte(`{"host": "{{.UUID}}", "fileByFilename": "x{{.RequestNumber}}"}`)})
		if err == nil {
			_ = made.Messages(1)
		}
	})
}

// describes is a server that has one answer to whatever it is asked.
type describes struct{ encoded []byte }

func (describes) SendMsg(any) error { return nil }

func (d describes) RecvMsg(m any) error {
	proto.Merge(m.(proto.Message), &pb.ServerReflectionResponse{MessageResponse: &pb.ServerReflectionResponse_FileDescriptorResponse{
		FileDescriptorResponse: &pb.FileDescriptorResponse{FileDescriptorProto: [][]byte{d.encoded}},
	}})
	return nil
}

// check compares a message with what protojson makes of its document.
func check(t *testing.T, m *Method, d document, at spot, got []byte) {
	t.Helper()
	filled, types := d.fill(at), m.known
	want, have := dynamicpb.NewMessage(m.input), dynamicpb.NewMessage(m.input)
	if err := (protojson.UnmarshalOptions{Resolver: types}).Unmarshal(filled, want); err != nil {
		testkit.Want(t, got == nil, "%s: %v", filled, err)
		return
	}
	err := (proto.UnmarshalOptions{Resolver: types}).Unmarshal(got, have)
	testkit.Need(t, err == nil, "%s: %x: %v", filled, got, err)
	// As JSON, where the messages in an Any have their fields in order, too.
	options := protojson.MarshalOptions{Resolver: types, AllowPartial: true}
	wantText, errWant := options.Marshal(want)
	haveText, errHave := options.Marshal(have)
	if (errWant == nil) != (errHave == nil) || !bytes.Equal(haveText, wantText) || errWant != nil && !proto.Equal(have, want) {
		t.Errorf("%s\ngot  %v\nwant %v", filled, have, want)
	}
}

func BenchmarkMessages(b *testing.B) {
	m, err := FromFiles(b.Context(), Files{Names: []string{"testdata/kinds.proto"}}, "kinds.v1.Kinds/Unary")
	testkit.Must(b, err)
	const four = `{"text": "user-{{.RequestNumber}}", "left": "{{newUUID}}", "an_int64": "{{randomInt 1 1000}}", "a_double": {{exponential 10}}}`
	for name, data := range map[string]Data{
		"constant": {Text: []byte(`{"text": "a"}`)},
		"four":     {Text: []byte(four)},
		"JSON":     {Text: []byte(four), JSON: true},
		"2 KB":     {Text: []byte(`{"inners": [` + strings.Repeat(`{"name": "the name of an article", "count": "2"}, `, 40) + `{"name": "{{newUUID}}"}]}`)},
	} {
		b.Run(name, func(b *testing.B) {
			r, err := m.Requests(data)
			testkit.Must(b, err)
			b.ReportAllocs()
			for n := uint64(0); b.Loop(); n++ {
				_ = r.Messages(n)
			}
		})
	}
}
