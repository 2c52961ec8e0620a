package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/test/oldjuggler"
)

// load is callers who wait for their answer before they call again.
type load struct{ callers []*websocket.Conn }

func openLoad(ctx context.Context, url string, n int) (*load, error) {
	l := &load{}
	dialer := websocket.Dialer{Subprotocols: []string{oldjuggler.Protocol}}
	for range n {
		ws, response, err := dialer.DialContext(ctx, url, nil)
		if err != nil {
			l.close()
			return nil, err
		}
		response.Body.Close()
		l.callers = append(l.callers, ws)
	}
	return l, nil
}

func (l *load) close() {
	for _, ws := range l.callers {
		ws.Close()
	}
}

// run calls for so long and returns how long each call took.
func (l *load) run(ctx context.Context, lasts time.Duration) (took []time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	var all sync.WaitGroup
	each, errs := make([][]time.Duration, len(l.callers)), make([]error, len(l.callers))
	for i, ws := range l.callers {
		all.Go(func() {
			for ctx.Err() == nil && errs[i] == nil {
				began := time.Now()
				errs[i] = call(ws)
				each[i] = append(each[i], time.Since(began))
			}
		})
	}
	all.Wait()
	for _, e := range errs {
		if e != nil {
			return nil, e
		}
	}
	return slices.Concat(each...), nil
}

// call waits for the result, and for the acknowledgment, which may come later.
func call(ws *websocket.Conn) error {
	frame := fmt.Appendf(nil, `{"meta":{"type":1,"uuid":"%s"},"payload":{"uri":"test.echo","timeout":10000000000,"args":"hello"}}`, oldjuggler.NewUUID())
	if err := ws.WriteMessage(websocket.TextMessage, frame); err != nil {
		return err
	}
	for left := 2; left > 0; left-- {
		_, got, err := ws.ReadMessage()
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(got, []byte(`{"meta":{"type":8,`)) && !bytes.HasPrefix(got, []byte(`{"meta":{"type":9,`)) {
			return fmt.Errorf("an answer that is none: %s", got)
		}
	}
	return nil
}
