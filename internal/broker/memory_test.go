package broker_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/broker/brokertest"
	"github.com/cabrank/cabrank/internal/testkit"
)

func TestMain(m *testing.M) { testkit.VerifyMain(m) }

func TestMemory(t *testing.T) {
	brokertest.Run(t, func(*testing.T) brokertest.House {
		m := broker.NewMemory(broker.MemoryOptions{CallCap: brokertest.CallCap})
		return brokertest.House{Broker: m, Serve: m.Serve, ServeStream: m.ServeStream, Close: m.Close}
	})
}

// Calls that wait are bounded in memory, and what ends them gives it back.
func TestMemoryIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := broker.NewMemory(broker.MemoryOptions{WaitingBytes: 10_000})
		ctx, leave := context.WithCancel(t.Context())
		var taken atomic.Int64
		place := func(ctx context.Context, uri string) (err error) {
			m.Call(ctx, broker.Call{
				URI: uri, Args: make(json.RawMessage, 400), Timeout: time.Minute,
				Accepted: func(e error) { err = e }, Answered: func(json.RawMessage, error) { taken.Add(-1) },
			})
			return err
		}
		for place(ctx, "a") == nil {
			taken.Add(1)
		}
		if calls, bytes := m.Waiting(); calls != int(taken.Load()) || calls < 5 || bytes > 10_000 {
			t.Errorf("%d calls wait with %d bytes, %d were taken", calls, bytes, taken.Load())
		}
		leave()
		synctest.Wait()
		if calls, bytes := m.Waiting(); calls != 0 || bytes != 0 || taken.Load() != 0 {
			t.Errorf("their caller has left: %d wait with %d bytes, %d were not told", calls, bytes, taken.Load())
		}
		err := place(t.Context(), "b")
		testkit.Want(t, err == nil, "no room after that: %v", err)
		taken.Add(1)
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		synctest.Wait()
		if calls, bytes := m.Waiting(); calls != 0 || bytes != 0 || taken.Load() != 0 {
			t.Errorf("the time is over: %d wait with %d bytes, %d were not told", calls, bytes, taken.Load())
		}
	})
}

// Who fills the memory of calls that wait leaves room for others.
func TestWaitingCallsOfOneSource(t *testing.T) {
	m := broker.NewMemory(broker.MemoryOptions{WaitingBytes: 100_000})
	ctx, leave := context.WithCancel(t.Context())
	place := func(source string) (err error) {
		m.Call(ctx, broker.Call{
			Caller: &broker.Caller{Source: source}, URI: "nobody", Args: make(json.RawMessage, 1000), Timeout: time.Minute,
			Accepted: func(e error) { err = e }, Answered: func(json.RawMessage, error) {},
		})
		return err
	}
	for range 100 {
		_ = place("greedy") // until it is refused
	}
	if _, bytes := m.Waiting(); bytes < 70_000 || bytes > 75_000 {
		t.Errorf("one source has %d of 100,000 bytes", bytes)
	}
	for range 5 {
		err := place("modest")
		testkit.Want(t, err == nil, "the other one: %v", err)
	}
	leave()
	testkit.Eventually(t, time.Minute, "the calls to end", func() bool { _, bytes := m.Waiting(); return bytes == 0 })
}

// One function that panics does not end the others.
func TestPanicIsAResult(t *testing.T) {
	m := broker.NewMemory(broker.MemoryOptions{})
	defer m.Serve("panics", 1, func(context.Context, json.RawMessage) (json.RawMessage, error) { panic("x") })()
	defer m.Serve("garbage", 1, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage("no JSON"), nil
	})()
	for uri, want := range map[string]string{
		"panics":  `{"error":{"message":"the function has panicked"}}`,
		"garbage": `{"error":{"message":"the function has returned no JSON"}}`,
	} {
		answered := make(chan string, 1)
		m.Call(t.Context(), broker.Call{
			URI: uri, Timeout: time.Minute, Accepted: func(error) {},
			Answered: func(result json.RawMessage, _ error) { answered <- string(result) },
		})
		testkit.Equal(t, <-answered, want, "%s", uri)
	}
}

type ownError struct{ code int }

func (ownError) Error() string                  { return "own" }
func (o ownError) MarshalJSON() ([]byte, error) { return json.Marshal(map[string]int{"code": o.code}) }

func TestErrorResult(t *testing.T) {
	testkit.Equal(t, string(broker.ErrorResult(ownError{7})), `{"code":7}`, "the result")
}

func TestMatches(t *testing.T) {
	for _, tc := range []struct {
		pattern, channel string
		want             bool
	}{
		{"news", "news", true},
		{"news", "newsx", false},
		{"", "", true},
		{"", "a", false},
		{"*", "", false}, // as Redis
		{"*", "anything", true},
		{"h?llo", "hallo", true},
		{"h?llo", "hllo", false},
		{"h*llo", "hllo", true},
		{"h*llo", "heeeello", true},
		{"**a**", "bab", true},
		{"h[ae]llo", "hello", true},
		{"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hallo", true},
		{"h[^e]llo", "hello", false},
		{"h[a-b]llo", "hbllo", true},
		{"h[b-a]llo", "hallo", true},
		{"h[a-b]llo", "hcllo", false},
		{`h\*llo`, "h*llo", true},
		{`h\*llo`, "hxllo", false},
		{`[\]]`, "]", true},
		{"[ab", "b", true},
		{"[ab", "c", false},
		{"[", "a", false},
		{"[]", "a", false},
		{"[^]", "a", true},
		{`a\`, `a\`, true},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "axxbyy", false},
	} {
		testkit.Equal(t, broker.Matches(tc.pattern, tc.channel), tc.want, "%q and %q", tc.pattern, tc.channel)
	}
}

// No pattern takes more than a moment.
func TestMatchesIsQuick(t *testing.T) {
	pattern, channel := "", ""
	for range 100 {
		pattern += "*a"
		channel += "aaaaaaaaaa"
	}
	began := time.Now()
	broker.Matches(pattern+"b", channel)
	took := time.Since(began)
	testkit.Want(t, took <= 5*time.Second, "it took %v", took)
}

// While an event is compared with patterns that take long, others go their way.
func TestMatchingHoldsUpNobody(t *testing.T) {
	m := broker.NewMemory(broker.MemoryOptions{})
	m.Listen(func(broker.Topic, broker.Event) {})
	subscribe := func(glob string) {
		m.Subscribe(broker.Topic{Name: glob, Pattern: true}, func(err error) {
			testkit.Want(t, err == nil, "%v", err)
		})
	}
	for i := range 300 {
		subscribe("*" + strings.Repeat("a", 511) + strconv.Itoa(i) + "*")
	}
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() {
		close(begun)
		m.Publish(broker.Event{Channel: strings.Repeat("a", 1024)}, func(error) {})
		close(ended)
	}()
	<-begun
	for others := 0; ; others++ {
		select {
		case <-ended:
			testkit.Want(t, others >= 100, "%d others have published meanwhile", others)
			return
		default:
			m.Publish(broker.Event{Channel: "b"}, func(error) {})
			subscribe(strconv.Itoa(others % 10))
			m.Unsubscribe(broker.Topic{Name: strconv.Itoa(others % 10), Pattern: true}, func(error) {})
		}
	}
}

func TestWork(t *testing.T) {
	for pattern, want := range map[string]int{
		"": 0, "*": 0, "news": 0, "user:1:*": 0, "aaaaaaaa*": 0, "**": 0,
		"*:user12": 1, "*.a.*": 2, "a*b*c": 2, "*abab": 2, "*aaaa*": 4, "*aaab": 3, `*\*\*\*`: 3, "*room:room:": 2,
		"*???": 3, "*[a-z][a-z]": 2, "*[": 1, `*a\`: 1, "*" + strings.Repeat("a", 511) + "001*": 511,
	} {
		testkit.Equal(t, broker.Work(pattern), want, "%q", pattern)
	}
}

func FuzzMatches(f *testing.F) {
	f.Add("a*[b-d]?", "axxcy")
	f.Fuzz(func(t *testing.T, pattern, channel string) {
		if len(pattern) > 200 || len(channel) > 200 {
			return
		}
		broker.Matches(pattern, channel)
		work := broker.Work(pattern)
		testkit.Want(t, work >= 0 && work <= len(pattern), "%q: %d", pattern, work)
		testkit.Want(t, channel == "" || broker.Matches("*", channel), "%q does not match *", channel)
	})
}
