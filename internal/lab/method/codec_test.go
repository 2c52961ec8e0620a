package method_test

import (
	"encoding/hex"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"

	"github.com/cabrank/cabrank/internal/lab/method"
)

// Requests go through grpc-go as bytes, of all kinds of calls; a server sees what any
// other client sends.
func TestCodec(t *testing.T) {
	type seen struct {
		content  []string
		messages string
	}
	calls := make(chan seen, 1)
	server := grpc.NewServer(grpc.ForceServerCodecV2(method.Codec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		head, _ := metadata.FromIncomingContext(stream.Context())
		got, err := everything(stream)
		calls <- seen{head.Get("content-type"), got}
		return errors.Join(err, stream.SendMsg([]byte("reply")))
	}))
	conn := serve(t, server)
	for name, sent := range map[string]struct{ data, want string }{
		"Cpu":   {`{"n": {{.RequestNumber}}}`, "0806;"},
		"Sum":   {`[{"value": 1}, {"value": {{.RequestNumber}}}, {}]`, "0801;0806;;"},
		"Count": {`{"to": 300}`, "08ac02;"},
		"Chat":  {`[]`, ""},
	} {
		m := fromFile(t, "../"+protos+"/cabrank/example/v1/work.proto", "cabrank.example.v1.Work/"+name)
		stream, err := conn.NewStream(t.Context(), m.StreamDesc(), m.Path, grpc.ForceCodecV2(method.Codec{}))
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range requests(t, m, sent.data).Messages(6) {
			if err := stream.SendMsg(one); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
		var reply []byte
		if err := stream.RecvMsg(&reply); err != nil || string(reply) != "reply" {
			t.Errorf("%s: %q %v", name, reply, err)
		}
		if got := <-calls; len(got.content) != 1 || got.content[0] != "application/grpc+proto" || got.messages != sent.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	var size method.Size
	if err := conn.Invoke(t.Context(), "/a.B/C", []byte("abc"), &size, grpc.ForceCodecV2(method.Codec{})); err != nil || size != 5 {
		t.Errorf("%d %v", size, err)
	}
	if got := <-calls; got.messages != "616263;" {
		t.Errorf("%q", got)
	}
}

// everything returns the messages of a stream, in hexadecimal.
func everything(stream grpc.ServerStream) (string, error) {
	var all string
	for {
		var one []byte
		if err := stream.RecvMsg(&one); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all += hex.EncodeToString(one) + ";"
	}
}

// The codec of everybody else in the process stays what it is.
func TestCodecIsNotRegistered(t *testing.T) {
	if _, ours := encoding.GetCodecV2("proto").(method.Codec); ours {
		t.Error("it took the place of protobuf's")
	}
	if got := (method.Codec{}).Name(); got != "proto" {
		t.Errorf("name %q", got)
	}
}

func TestCodecReplies(t *testing.T) {
	data, err := method.Codec{}.Marshal([]byte("abc"))
	if err != nil {
		t.Fatal(err)
	}
	var size method.Size
	room := make([]byte, 0, 10)
	kept := room
	if err := (method.Codec{}).Unmarshal(data, &size); err != nil || size != 3 {
		t.Errorf("%d %v", size, err)
	}
	if err := (method.Codec{}).Unmarshal(data, &kept); err != nil || string(kept) != "abc" || &kept[0] != &room[:1][0] {
		t.Errorf("%q %v", kept, err)
	}
	if err := (method.Codec{}).Unmarshal(data, "other"); err == nil {
		t.Error("took a string")
	}
	if _, err := (method.Codec{}).Marshal("other"); err == nil {
		t.Error("took a string")
	}
}
