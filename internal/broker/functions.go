package broker

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// TestFunctions are functions for trying out a socket: test.echo returns a string,
// test.reverse reverses it, test.delay sleeps for a string of milliseconds and returns
// them as a number, test.nothing returns nothing.
func TestFunctions() map[string]Function {
	return map[string]Function{
		"test.echo":    ofString(func(_ context.Context, s string) (any, error) { return s, nil }),
		"test.reverse": ofString(func(_ context.Context, s string) (any, error) { return reversed(s), nil }),
		"test.delay":   ofString(delay),
		"test.nothing": func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, nil },
	}
}

// TestStreams are test functions with several results: test.count counts to a number.
func TestStreams() map[string]StreamFunction {
	return map[string]StreamFunction{"test.count": count}
}

func count(_ context.Context, args json.RawMessage, send func(json.RawMessage) error) (json.RawMessage, error) {
	var s string
	if err := json.Unmarshal(args, &s); err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(s)
	for i := 1; i <= n && err == nil; i++ {
		err = send(strconv.AppendInt(nil, int64(i), 10))
	}
	return nil, err
}

func ofString(f func(context.Context, string) (any, error)) Function {
	return func(ctx context.Context, args json.RawMessage) (json.RawMessage, error) {
		var s string
		if err := json.Unmarshal(args, &s); err != nil {
			return nil, err
		}
		result, err := f(ctx, s)
		if err != nil {
			return nil, err
		}
		return json.Marshal(result)
	}
}

func reversed(s string) string {
	letters := []rune(s)
	slices.Reverse(letters)
	return string(letters)
}

func delay(ctx context.Context, ms string) (any, error) {
	n, err := strconv.Atoi(ms)
	if err != nil {
		return nil, err
	}
	timer := time.NewTimer(time.Duration(n) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return n, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
