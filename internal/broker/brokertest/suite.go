// Package brokertest is what every broker has to pass, and nothing of how it does it.
package brokertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/socket"
	"github.com/cabrank/cabrank/internal/testkit"
)

// House is a broker with its surroundings, new for each test.
type House struct {
	// Broker is tested. Its calls per URI are bounded by CallCap.
	Broker socket.Broker
	// Serve has a function answer calls of a URI, so many at once, until stop.
	Serve func(uri string, atOnce int, f broker.Function) (stop func())
	// ServeStream is Serve for a function with several results; nil if the broker has none.
	ServeStream func(uri string, atOnce int, f broker.StreamFunction) (stop func())
	// Close has the broker be gone.
	Close func()
	// Unordered is set if its callees run calls in another order than they take them.
	Unordered bool
	// Unannounced is set if the broker does not know which URIs have callees: all calls wait.
	Unannounced bool
	// Tagged is set if names have to be hash tags of a Redis Cluster, which "" cannot be.
	Tagged bool
}

// guest is a test in its House.
type guest struct {
	*testing.T
	House
}

// CallCap is the bound that a House has.
const CallCap = 50

// within bounds what has to happen.
const within = 10 * time.Second

// Run runs the suite.
func Run(t *testing.T, open func(t *testing.T) House) {
	t.Helper()
	for name, test := range map[string]func(guest){
		"a call is answered":                 isAnswered,
		"a call without arguments":           hasNoArguments,
		"a call that nobody serves expires":  expires,
		"a call waits for who serves it":     waits,
		"a call that is slow expires":        isSlow,
		"an expired call is not executed":    isNotExecuted,
		"an error is a result":               fails,
		"calls are taken in order":           inOrder,
		"as many calls at once as allowed":   atOnce,
		"more calls wait than may":           overflows,
		"a caller that leaves":               leaves,
		"an event comes to its channel":      comes,
		"an event comes by a pattern":        comesByPattern,
		"events come in order":               eventsInOrder,
		"no event after unsubscribing":       unsubscribes,
		"subscribing again":                  subscribesAgain,
		"a broker that is gone refuses all":  isGone,
		"many calls at a time":               many,
		"publishing for nobody is no error":  forNobody,
		"large arguments come as they are":   large,
		"letters that are special in a name": special,
		"several results, by credit":         ifStreams(streams),
		"several results for a single one":   ifStreams(streamsToOne),
		"several results for who has left":   ifStreams(streamLeft),
		"a call that must not wait":          ifStreams(isServed),
	} {
		t.Run(name, func(t *testing.T) {
			testkit.CheckLeaks(t)
			test(guest{t, open(t)})
		})
	}
}

func ifStreams(test func(guest)) func(guest) {
	return func(t guest) {
		if t.ServeStream == nil {
			t.Close()
			t.Skip("its functions have one result")
		}
		test(t)
	}
}

// outcome is what a caller is told.
type outcome struct {
	result string
	err    error
}

// pending is a call that was made.
type pending struct {
	accepted chan error
	answered chan outcome
}

// place makes a call.
func place(ctx context.Context, b socket.Broker, c broker.Call) pending {
	p := pending{accepted: make(chan error, 2), answered: make(chan outcome, 2)}
	c.Accepted = func(err error) { p.accepted <- err }
	c.Answered = func(result json.RawMessage, err error) { p.answered <- outcome{string(result), err} }
	b.Call(ctx, c)
	return p
}

func call(ctx context.Context, b socket.Broker, uri string, args string, timeout time.Duration) pending {
	c := broker.Call{URI: uri, Timeout: timeout}
	if args != "" {
		c.Args = json.RawMessage(args)
	}
	return place(ctx, b, c)
}

func receive[T any](t testing.TB, from <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(within):
		t.Fatalf("waited %v in vain for %s", within, what)
	}
	return v
}

// want holds a call that must be taken against its outcome, which comes once.
func (p pending) want(t testing.TB, result string, err error) {
	t.Helper()
	if got := receive(t, p.accepted, "a call to be accepted"); got != nil {
		t.Fatalf("refused: %v", got)
	}
	if got := receive(t, p.answered, "an answer"); got.result != result || !errors.Is(got.err, err) {
		t.Fatalf("got %q, %v; want %q, %v", got.result, got.err, result, err)
	}
	if len(p.accepted)+len(p.answered) > 0 {
		t.Fatal("told twice")
	}
}

func echo(_ context.Context, args json.RawMessage) (json.RawMessage, error) { return args, nil }

func isAnswered(t guest) {
	defer t.Serve("echo", 2, echo)()
	call(t.Context(), t.Broker, "echo", `{"a":[1,"x"]}`, within).want(t, `{"a":[1,"x"]}`, nil)
}

func hasNoArguments(t guest) {
	defer t.Serve("none", 1, func(_ context.Context, args json.RawMessage) (json.RawMessage, error) {
		if args != nil {
			return nil, fmt.Errorf("arguments: %s", args)
		}
		return nil, nil
	})()
	call(t.Context(), t.Broker, "none", "", within).want(t, "", nil)
}

func expires(t guest) {
	began := time.Now()
	call(t.Context(), t.Broker, "nobody", "1", 100*time.Millisecond).want(t, "", broker.ErrExpired)
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("it has expired after %v", took)
	}
}

func waits(t guest) {
	p := call(t.Context(), t.Broker, "later", "1", within)
	p.accepted <- receive(t, p.accepted, "a call to be accepted")
	defer t.Serve("later", 1, echo)()
	p.want(t, "1", nil)
}

func isSlow(t guest) {
	begun := make(chan struct{}, 1)
	defer t.Serve("slow", 1, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		begun <- struct{}{}
		<-ctx.Done()
		return json.RawMessage(`"late"`), nil
	})()
	call(t.Context(), t.Broker, "slow", "1", 200*time.Millisecond).want(t, "", broker.ErrExpired)
	receive(t, begun, "the function to begin")
}

func isNotExecuted(t guest) {
	ran := make(chan string, 2)
	call(t.Context(), t.Broker, "late", `"old"`, 50*time.Millisecond).want(t, "", broker.ErrExpired)
	<-time.After(100 * time.Millisecond) // the process that keeps the call has another clock
	defer t.Serve("late", 1, func(_ context.Context, args json.RawMessage) (json.RawMessage, error) {
		ran <- string(args)
		return args, nil
	})()
	call(t.Context(), t.Broker, "late", `"new"`, within).want(t, `"new"`, nil)
	if got := receive(t, ran, "a call to run"); got != `"new"` {
		t.Errorf("%s was executed", got)
	}
}

func fails(t guest) {
	defer t.Serve("fails", 1, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return nil, errors.New("no <luck>")
	})()
	p := call(t.Context(), t.Broker, "fails", "1", within)
	testkit.Must(t, receive(t, p.accepted, "a call to be accepted"))
	var got struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	o := receive(t, p.answered, "an answer")
	if err := json.Unmarshal([]byte(o.result), &got); err != nil || got.Error.Message != "no <luck>" {
		t.Errorf("got %q, %v", o.result, o.err)
	}
}

func inOrder(t guest) {
	var all []pending
	for i := range 20 {
		p := call(t.Context(), t.Broker, "order", fmt.Sprint(i), within)
		p.accepted <- receive(t, p.accepted, "a call to be accepted")
		all = append(all, p)
	}
	var mu sync.Mutex
	var ran []string
	defer t.Serve("order", 1, func(_ context.Context, args json.RawMessage) (json.RawMessage, error) {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, string(args))
		return args, nil
	})()
	for i, p := range all {
		p.want(t, fmt.Sprint(i), nil)
	}
	for i, got := range ran {
		if got != fmt.Sprint(i) && !t.Unordered {
			t.Fatalf("ran in the order %v", ran)
		}
	}
}

func atOnce(t guest) {
	running, release := make(chan struct{}, 10), make(chan struct{})
	defer t.Serve("slots", 2, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		running <- struct{}{}
		<-release
		return nil, nil
	})()
	var all []pending
	for range 4 {
		all = append(all, call(t.Context(), t.Broker, "slots", "1", within))
	}
	for range 2 {
		receive(t, running, "two calls to run")
	}
	select {
	case <-running:
		t.Error("three run at once")
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	for _, p := range all {
		p.want(t, "", nil)
	}
}

func overflows(t guest) {
	for range CallCap {
		testkit.Must(t, receive(t, call(t.Context(), t.Broker, "full", "1", within).accepted, "a call to be accepted"))
	}
	p := call(t.Context(), t.Broker, "full", "1", within)
	if err := receive(t, p.accepted, "a call to be refused"); err == nil || err.Error() != broker.ErrCapacity.Error() {
		t.Errorf("one too much: %v", err)
	}
	defer t.Serve("full", 4, echo)()
	// Those that were taken run; there is room again.
	testkit.Eventually(t, within, "room", func() bool {
		return receive(t, call(t.Context(), t.Broker, "full", "1", within).accepted, "an answer") == nil
	})
	if len(p.answered) > 0 {
		t.Error("a call was refused and answered")
	}
}

func leaves(t guest) {
	ctx, leave := context.WithCancel(t.Context())
	p := call(ctx, t.Broker, "left", "1", within)
	testkit.Must(t, receive(t, p.accepted, "a call to be accepted"))
	leave()
	if got := receive(t, p.answered, "an answer"); got.err == nil {
		t.Errorf("got %q", got.result)
	}
}

func isGone(t guest) {
	t.Broker.Listen(func(broker.Topic, broker.Event) {})
	t.Close()
	errs := make(chan error, 3)
	told := func(err error) { errs <- err }
	t.Broker.Publish(broker.Event{Channel: "c"}, told)
	t.Broker.Subscribe(broker.Topic{Name: "c"}, told)
	for range 2 {
		if receive(t, errs, "a refusal") == nil {
			t.Error("not refused")
		}
	}
	if receive(t, call(t.Context(), t.Broker, "echo", "1", within).accepted, "a refusal") == nil {
		t.Error("a call was taken")
	}
}

func many(t guest) {
	defer t.Serve("many", 8, echo)()
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() {
			for j := range 20 {
				args := fmt.Sprint(i*100 + j)
				p := call(t.Context(), t.Broker, "many", args, within)
				if err := <-p.accepted; err != nil {
					t.Error(err)
					return
				}
				if got := <-p.answered; got.result != args || got.err != nil {
					t.Errorf("got %q, %v, want %s", got.result, got.err, args)
				}
			}
		})
	}
	callers.Wait()
}

func large(t guest) {
	defer t.Serve("large", 1, echo)()
	text := make([]byte, 300_000)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	args := `"` + string(text) + `"`
	call(t.Context(), t.Broker, "large", args, within).want(t, args, nil)
}

func special(t guest) {
	for _, uri := range []string{"", "}", "a b", "a}b{c", "ü/ö", "new\nline", "\x00"} {
		if t.Tagged && (uri == "" || uri[0] == '}') {
			if receive(t, call(t.Context(), t.Broker, uri, "1", within).accepted, "a refusal") == nil {
				t.Errorf("%q was taken", uri)
			}
			continue
		}
		stop := t.Serve(uri, 1, echo)
		call(t.Context(), t.Broker, uri, "1", within).want(t, "1", nil)
		stop()
	}
}
