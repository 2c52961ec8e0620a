package callee

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
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
			testkit.Must(t, c.Shutdown(t.Context()))
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
		testkit.Equal(t, p.await(t.Context()), 3, "places")
		a, b := p.take(2), p.take(2)
		testkit.Want(t, a == 2 && b == 1, "took %d and %d", a, b)
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
		testkit.Want(t, len(got) == 3 && p.take(5) == 1, "%d were told", len(got))
		go func() { got <- p.await(ctx) }()
		synctest.Wait()
		cancel()
		synctest.Wait()
		testkit.Want(t, len(got) == 4, "%d were told", len(got))
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
		testkit.Need(t, c.places.take(1)+len(calls) == 1, "%d calls, and a place too many or too few", len(calls))
		for _, call := range calls {
			testkit.Need(t, call.URI == "u" && call.function != nil, "%+v", call)
			call.deadline = time.Time{}
			c.launch(call)
		}
		testkit.Need(t, c.places.take(2) <= 1 && c.Stats().Running == 0, "%+v", c.Stats())
	})
}

// An answer counts once, and only in time.
func TestAnswer(t *testing.T) {
	c := New(Options{})
	call := &Call{callee: c, end: func() {}, deadline: time.Now().Add(-time.Second)}
	call.open.Store(2)
	c.calls.Add(1)
	err := call.Answer(make(chan int), nil)
	testkit.Want(t, err != nil && !errors.Is(err, ErrExpired), "%v", err)
	err = call.Answer(1, nil)
	testkit.Want(t, errors.Is(err, ErrExpired), "%v", err)
	err = call.Answer(1, nil)
	testkit.Want(t, errors.Is(err, ErrAnswered), "%v", err)
}
