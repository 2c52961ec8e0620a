package callee_test

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/cabrank/cabrank/callee"
)

// A program that answers two functions until it is told to stop.
func Example() { //nolint:testableexamples // it needs a Redis
	c := callee.New(callee.Options{Redis: "localhost:6379"})
	callee.Handle(c, "greet", func(_ context.Context, name string) (string, error) {
		return "Hello " + name, nil
	})
	callee.Handle(c, "divide", func(_ context.Context, n [2]int) (int, error) {
		if n[1] == 0 {
			return 0, errors.New("by nothing") // the result is {"error":{"message":"by nothing"}}
		}
		return n[0] / n[1], nil
	})

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := c.Run(ctx); err != nil {
		log.Print(err)
	}
}

// Middleware is around all functions. This one knows who may call what.
func ExampleMiddleware() { //nolint:testableexamples // it needs a Redis
	allowed := map[string]bool{"greet": true}
	guard := func(next callee.Handler) callee.Handler {
		return func(ctx context.Context, call *callee.Call) (any, error) {
			if !allowed[call.URI] {
				return nil, errors.New("not allowed")
			}
			return next(ctx, call)
		}
	}
	callee.New(callee.Options{Redis: "localhost:6379", Middleware: []callee.Middleware{guard}})
}

// A function that hands its calls to something else, which answers them later.
func ExampleCall_Answer() { //nolint:testableexamples // it needs a Redis
	jobs := make(chan *callee.Call, 100)
	c := callee.New(callee.Options{Redis: "localhost:6379", Workers: 100})
	c.HandleCalls("render", func(_ context.Context, call *callee.Call) (any, error) {
		jobs <- call // there is room: it has no more calls than workers
		return nil, callee.ErrLater
	})
	go func() {
		for call := range jobs {
			if err := call.Answer("done", nil); err != nil {
				log.Print(err) // its time was over
			}
		}
	}()
}
