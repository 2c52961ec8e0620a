// Command client calls each method of Work once and prints one JSON line per
// case.
//
// usage: client [HOST:PORT]
package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/examples/go/workpb"
)

// A testCase is one line of output: a name and how to get what is shown.
type testCase struct {
	name string
	run  func(context.Context, workpb.WorkClient) (any, error)
}

func cases() []testCase {
	return []testCase{
		{"cpu", cpu},
		{"io", wait},
		{"count", count(5)},
		{"count nothing", count(0)},
		{"sum", sum(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)},
		{"sum nothing", sum()},
		{"chat", chat("one", "zwei", "三")},
		{"fail", failure},
		{"meta", meta},
		{"deadline", deadline},
		{"cancel", cancel},
	}
}

func cpu(ctx context.Context, client workpb.WorkClient) (any, error) {
	reply, err := client.Cpu(ctx, &workpb.CpuRequest{N: 20})
	return reply.GetValue(), err
}

func wait(ctx context.Context, client workpb.WorkClient) (any, error) {
	reply, err := client.Io(ctx, &workpb.IoRequest{Millis: 10})
	return reply.GetMillis(), err
}

func count(to uint32) func(context.Context, workpb.WorkClient) (any, error) {
	return func(ctx context.Context, client workpb.WorkClient) (any, error) {
		stream, err := client.Count(ctx, &workpb.CountRequest{To: to})
		if err != nil {
			return nil, err
		}
		values := []uint32{}
		for {
			number, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return values, nil
			}
			if err != nil {
				return nil, err
			}
			values = append(values, number.GetValue())
		}
	}
}

func sum(values ...uint32) func(context.Context, workpb.WorkClient) (any, error) {
	return func(ctx context.Context, client workpb.WorkClient) (any, error) {
		stream, err := client.Sum(ctx)
		if err != nil {
			return nil, err
		}
		for _, value := range values {
			if err := stream.Send(&workpb.Number{Value: value}); err != nil {
				return nil, err
			}
		}
		total, err := stream.CloseAndRecv()
		return total.GetValue(), err
	}
}

// chat sends every text but the first after the answer to the one before.
func chat(texts ...string) func(context.Context, workpb.WorkClient) (any, error) {
	return func(ctx context.Context, client workpb.WorkClient) (any, error) {
		stream, err := client.Chat(ctx)
		if err != nil {
			return nil, err
		}
		var answers []string
		for _, text := range texts {
			if err := stream.Send(&workpb.ChatMessage{Text: text}); err != nil {
				return nil, err
			}
			answer, err := stream.Recv()
			if err != nil {
				return nil, err
			}
			answers = append(answers, answer.GetText())
		}
		if err := stream.CloseSend(); err != nil {
			return nil, err
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("after the last answer: %w", err)
		}
		return answers, nil
	}
}

func failure(ctx context.Context, client workpb.WorkClient) (any, error) {
	_, err := client.Fail(ctx, &workpb.FailRequest{Code: 9, Message: "sold out: café ☕", Reason: "SOLD_OUT"})
	got := status.Convert(err)
	if len(got.Details()) != 1 {
		return nil, fmt.Errorf("want one detail: %w", err)
	}
	detail, _ := got.Details()[0].(*workpb.FailDetail)
	return map[string]any{"code": got.Code(), "message": got.Message(), "reason": detail.GetReason()}, nil
}

func meta(ctx context.Context, client workpb.WorkClient) (any, error) {
	ctx = metadata.AppendToOutgoingContext(ctx,
		"x-head", "one", "x-head", "two", "x-tail-bin", "\x00\x01\xfe\xff")
	var header, trailer metadata.MD
	_, err := client.Meta(ctx,
		&workpb.MetaRequest{Headers: []string{"x-head"}, Trailers: []string{"x-tail-bin"}},
		grpc.Header(&header), grpc.Trailer(&trailer))
	return map[string]string{
		"header":  strings.Join(header.Get("x-head"), ", "),
		"trailer": hex.EncodeToString([]byte(strings.Join(trailer.Get("x-tail-bin"), ""))),
	}, err
}

func deadline(ctx context.Context, client workpb.WorkClient) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err := client.Io(ctx, &workpb.IoRequest{Millis: 1000})
	return status.Code(err), nil
}

// cancel leaves in the middle of a stream of 20 s.
func cancel(ctx context.Context, client workpb.WorkClient) (any, error) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	stream, err := client.Count(ctx, &workpb.CountRequest{To: 1000, PauseMillis: 20})
	for err == nil {
		if _, err = stream.Recv(); err == nil {
			leave()
		}
	}
	return status.Code(err), nil
}

func main() {
	target := "localhost:8080"
	if len(os.Args) > 1 {
		target = os.Args[1]
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	client := workpb.NewWorkClient(conn)
	out := json.NewEncoder(os.Stdout)
	for _, c := range cases() {
		got, err := c.run(context.Background(), client)
		if err != nil {
			log.Fatalf("%s: %v", c.name, err)
		}
		if err := out.Encode(map[string]any{"case": c.name, "got": got}); err != nil {
			log.Fatal(err)
		}
	}
}
