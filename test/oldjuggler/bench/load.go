package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// load is callers who wait for their answer before they call again.
type load struct {
	speech  speech
	callers []*websocket.Conn
}

func openLoad(ctx context.Context, a *arm, n int) (*load, error) {
	l := &load{speech: speechOf(a.name)}
	for range n {
		ws, err := l.speech.dial(ctx, a.url, 0)
		if err != nil {
			l.close()
			return nil, err
		}
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
				errs[i] = l.speech.once(ws)
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
