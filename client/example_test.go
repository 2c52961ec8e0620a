package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/cabrank/cabrank/client"
	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/socket"
)

// start starts what "cabrank socket serve --test-functions" does.
func start() (url string, stop func()) {
	memory := broker.NewMemory(broker.MemoryOptions{})
	for uri, f := range broker.TestFunctions() {
		memory.Serve(uri, 4, f)
	}
	server := socket.New(socket.Options{Broker: memory})
	web := httptest.NewServer(server)
	return "ws" + strings.TrimPrefix(web.URL, "http") + "/ws", func() {
		server.Close()
		web.Close()
		memory.Close()
	}
}

func Example() {
	url, stop := start() // or "ws://localhost:9000/ws"
	defer stop()
	ctx := context.Background()
	c, err := client.Dial(ctx, url, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	fmt.Println(client.Call[string](ctx, c, "test.reverse", "abc"))

	news, err := c.Subscribe(ctx, "news")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"first", "second", "last"} {
		if err := c.Publish(ctx, "news", text); err != nil {
			fmt.Println(err)
			return
		}
	}
	for text, err := range client.Values[string](ctx, news) {
		fmt.Println(text, err)
		if text == "last" {
			news.Close()
		}
	}
	// Output:
	// cba <nil>
	// first <nil>
	// second <nil>
	// last <nil>
}

// How a call can end.
func ExampleClient_Call() {
	url, stop := start()
	defer stop()
	c, err := client.Dial(context.Background(), url, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()

	_, err = c.Call(ctx, "test.delay", "60000")

	var refused *client.RefusedError
	var failed *client.FunctionError
	var lost *client.DisconnectedError
	switch {
	case errors.As(err, &refused):
		fmt.Println("the server did not take it:", refused.Code)
	case errors.As(err, &failed):
		fmt.Println("the function has failed:", failed.Message)
	case errors.As(err, &lost) && lost.Sent:
		fmt.Println("it may have been served, or not")
	case errors.As(err, &lost):
		fmt.Println("it was not served, and can be made again")
	case errors.Is(err, context.DeadlineExceeded):
		fmt.Println("no result in time")
	}
	// Output: no result in time
}
