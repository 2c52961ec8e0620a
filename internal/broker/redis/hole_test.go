package redis_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/redislink"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/testkit/fakeredis"
)

// stream takes any number of results.
type stream struct{ results chan string }

func (s stream) Send(context.Context, json.RawMessage) error {
	return errors.New("over Redis nobody waits")
}
func (s stream) Watch(f func(credit int)) { f(100) }

func (s stream) Offer(result json.RawMessage) bool {
	s.results <- string(result)
	return true
}

// list is the answer to a pop.
func list(entries ...redislink.Entry) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*2\r\n+list\r\n*%d\r\n", len(entries))
	for _, e := range entries {
		text, _ := json.Marshal(e)
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(text), text)
	}
	return b.String()
}

// A stream of which a result is lost ends with an error, not as if it were whole: if a later
// one comes, or the last one alone.
func TestHoleInAStream(t *testing.T) {
	testkit.CheckLeaks(t)
	hole := string(broker.ErrorResult(broker.ErrHole))
	for name, c := range map[string]struct {
		entries []redislink.Entry
		got     int
		last    string
	}{
		"whole":         {[]redislink.Entry{{More: 1}, {More: 1}, {More: 2}, {Count: 2, Args: json.RawMessage("7")}}, 2, "7"},
		"nothing":       {[]redislink.Entry{{Args: json.RawMessage("7")}}, 0, "7"},
		"of old callee": {[]redislink.Entry{{More: 1}, {Args: json.RawMessage("7")}}, 1, "7"},
		"in between":    {[]redislink.Entry{{More: 1}, {More: 3}, {Count: 3}}, 1, hole},
		"first":         {[]redislink.Entry{{More: 2}, {Count: 2}}, 0, hole},
		"before last":   {[]redislink.Entry{{More: 1}, {Count: 2}}, 1, hole},
	} {
		t.Run(name, func(t *testing.T) {
			called := make(chan redislink.Entry, 1)
			server := fakeredis.Start(t, func(_ *fakeredis.Conn, args []string) string {
				switch args[0] {
				case "LPUSH":
					var e redislink.Entry
					if err := json.Unmarshal([]byte(args[2]), &e); err != nil {
						t.Error(err)
					}
					called <- e
				case "BLMPOP":
					select {
					case e := <-called:
						for i := range c.entries {
							c.entries[i].Conn, c.entries[i].ID, c.entries[i].URI = e.Conn, e.ID, e.URI
						}
						return list(c.entries...)
					case <-t.Context().Done():
					}
				}
				return fakeredis.Default(args)
			})
			s, last := stream{make(chan string, 10)}, make(chan string, 2)
			open(t, server).Call(t.Context(), broker.Call{
				URI: "f", Timeout: time.Minute, Stream: s, Accepted: func(error) {},
				Answered: func(result json.RawMessage, err error) { last <- fmt.Sprint(string(result), err) },
			})
			if got := <-last; got != c.last+"<nil>" || len(s.results) != c.got {
				t.Errorf("got %s behind %d results", got, len(s.results))
			}
		})
	}
}
