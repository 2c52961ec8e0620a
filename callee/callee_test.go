package callee

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func nothing(context.Context, *Call) (any, error) { return nil, nil }

// What cannot work is an error of Start, before Redis is asked.
func TestStart(t *testing.T) {
	for want, c := range map[string]*Callee{
		"no functions":                New(Options{}),
		`two functions for "a"`:       New(Options{}),
		"redis: want an address":      New(Options{Redis: "me:secret@localhost"}),
		"started before, or has ende": New(Options{}),
	} {
		if want != "no functions" {
			c.HandleCalls("a", nothing)
		}
		if strings.HasPrefix(want, "two") {
			c.HandleCalls("a", nothing)
		}
		if strings.HasPrefix(want, "started") {
			if err := c.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if err := c.Start(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Who waits for a place is told of one, whoever else waits.
func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces(3)
		if n := p.await(t.Context()); n != 3 {
			t.Errorf("%d places", n)
		}
		if a, b := p.take(2), p.take(2); a != 2 || b != 1 {
			t.Errorf("took %d and %d", a, b)
		}
		got := make(chan int, 4)
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go func() {
				got <- p.await(ctx)
			}()
		}
		synctest.Wait()
		p.release()
		synctest.Wait()
		if len(got) != 3 || p.take(5) != 1 {
			t.Errorf("%d were told", len(got))
		}
		go func() { got <- p.await(ctx) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if len(got) != 4 {
			t.Errorf("%d were told", len(got))
		}
	})
}

// What is popped and is no call gives its place back, and is nothing else.
func FuzzRead(f *testing.F) {
	f.Add(`{"conn_uuid":"c","msg_uuid":"m","uri":"u","args":[1]}`)
	f.Add(`{"args":null}`)
	f.Add(`nonsense`)
	f.Fuzz(func(t *testing.T, entry string) {
		c := New(Options{Workers: 1})
		c.HandleCalls("u", nothing)
		c.places.take(1)
		calls := c.read("u", []string{entry})
		if c.places.take(1)+len(calls) != 1 {
			t.Fatalf("%d calls, and a place too many or too few", len(calls))
		}
		for _, call := range calls {
			if call.URI != "u" || call.function == nil {
				t.Fatalf("%+v", call)
			}
			call.deadline = time.Time{}
			c.launch(call)
		}
		if c.places.take(2) > 1 || c.Stats().Running != 0 {
			t.Fatalf("%+v", c.Stats())
		}
	})
}

// An answer counts once, and only in time.
func TestAnswer(t *testing.T) {
	c := New(Options{})
	call := &Call{callee: c, end: func() {}, deadline: time.Now().Add(-time.Second)}
	call.open.Store(2)
	c.calls.Add(1)
	if err := call.Answer(make(chan int), nil); err == nil || errors.Is(err, ErrExpired) {
		t.Error(err)
	}
	if err := call.Answer(1, nil); !errors.Is(err, ErrExpired) {
		t.Error(err)
	}
	if err := call.Answer(1, nil); !errors.Is(err, ErrAnswered) {
		t.Error(err)
	}
}
