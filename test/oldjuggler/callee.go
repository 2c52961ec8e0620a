package oldjuggler

import (
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Function answers a call. An error becomes a result.
type Function func(args json.RawMessage) (json.RawMessage, error)

// Callee takes calls from Redis and puts results there.
//
// Life: NewCallee, then Run until Close; or Run ends by itself with the error of a
// connection, for it opens none again.
type Callee struct {
	functions map[string]Function
	workers   int
	resultCap int
	pool      *redis.Pool
	scripts   scripts
	pops      redis.Conn
}

// NewCallee returns one that runs so many calls at once.
func NewCallee(dial func() (redis.Conn, error), workers int, functions map[string]Function) (*Callee, error) {
	pops, err := dial()
	if err != nil {
		return nil, err
	}
	return &Callee{functions: functions, workers: workers, pool: newPool(dial), scripts: newScripts(), pops: pops}, nil
}

// Close ends Run. Calls that it has taken and not begun are lost.
func (c *Callee) Close() { c.pops.Close() }

// Run takes calls, however many workers are free.
func (c *Callee) Run() error {
	var lists []string
	for uri := range c.functions {
		lists = append(lists, callsKey(uri))
	}
	calls := make(chan stored)
	var workers, taken sync.WaitGroup
	defer c.pool.Close()
	defer workers.Wait()
	defer close(calls)
	defer taken.Wait()
	for range c.workers {
		workers.Go(func() {
			for call := range calls {
				_ = c.invoke(call) // an expired call, or a result that is lost
			}
		})
	}
	for {
		call, err := pop(c.pops, lists...)
		if err != nil {
			return err
		}
		taken.Go(func() { calls <- call })
	}
}

var errExpired = errors.New("expired")

func (c *Callee) invoke(call stored) error {
	left, err := c.scripts.left(c.pool, callTimeoutKey(call.URI, call.ID))
	if err != nil || left <= 0 {
		return errExpired
	}
	began := time.Now()
	args, err := c.functions[call.URI](call.Args)
	if err != nil {
		args, err = json.Marshal(map[string]any{"error": map[string]string{"message": err.Error()}})
		if err != nil {
			return err
		}
	}
	if left -= time.Since(began); left < time.Millisecond {
		return errExpired
	}
	result := stored{Conn: call.Conn, ID: call.ID, URI: call.URI, Args: args}
	return c.scripts.put(c.pool, resultTimeoutKey(call.Conn, call.ID), resultsKey(call.Conn), left.Milliseconds(), result, c.resultCap)
}

// TestFunctions are those that everybody has who tries it: test.echo, test.reverse,
// test.delay, which sleeps for a string of milliseconds and returns them as a number,
// and test.nothing, which returns nothing.
func TestFunctions() map[string]Function {
	return map[string]Function{
		"test.echo":    ofString(func(s string) (any, error) { return s, nil }),
		"test.reverse": ofString(func(s string) (any, error) { return reverse(s), nil }),
		"test.delay": ofString(func(s string) (any, error) {
			ms, err := strconv.Atoi(s)
			if err != nil {
				return nil, err
			}
			time.Sleep(time.Duration(ms) * time.Millisecond)
			return ms, nil
		}),
		"test.nothing": func(json.RawMessage) (json.RawMessage, error) { return nil, nil },
	}
}

func ofString(f func(string) (any, error)) Function {
	return func(args json.RawMessage) (json.RawMessage, error) {
		var s string
		if err := json.Unmarshal(args, &s); err != nil {
			return nil, err
		}
		v, err := f(s)
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	}
}

func reverse(s string) string {
	runes := []rune(s)
	for i, j := 0, len(runes)-1; i < j; i, j = i+1, j-1 {
		runes[i], runes[j] = runes[j], runes[i]
	}
	return string(runes)
}
