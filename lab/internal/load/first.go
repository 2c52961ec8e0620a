package load

import (
	"fmt"
	"net"
	"time"

	"github.com/cabrank/cabrank/lab/internal/measure"
	"github.com/cabrank/cabrank/lab/internal/rawh2"
)

const (
	// pause lies between two tries: short beside any start-up, long enough to
	// leave the core to others.
	pause = 200 * time.Microsecond
	// longestTry bounds one try, in case that a proxy loses the first call.
	longestTry = 2 * time.Second
)

// firstAnswer tries until one call is answered well, on a new connection each
// time, for at most the duration of the plan.
func firstAnswer(p Plan) (measure.Result, error) {
	p.Conns, p.Streams = 1, 1
	began := time.Now()
	var last string
	for time.Since(began) < p.Duration {
		failure := tryOnce(p)
		if failure == "" {
			now := time.Now()
			return measure.Result{Conns: 1, Streams: 1, Size: p.Size, Answers: p.Answers, Calls: 1, Seconds: now.Sub(began).Seconds(), FirstAnswer: now.UnixNano()}, nil
		}
		last = failure
		time.Sleep(pause)
	}
	return measure.Result{}, fmt.Errorf("no call was answered within %v; the last try: %s", p.Duration, last)
}

// tryOnce makes one call and says how it failed, "" meaning well.
func tryOnce(p Plan) string {
	conn, err := net.DialTimeout("tcp", p.Addr, grace)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(min(longestTry, p.Duration))) //nolint:errcheck // a dead connection fails its call
	c := newClient(rawh2.NewConn(conn, true, rawh2.SmallReadBuffer), 0, p, newForm(p), newSignals())
	c.limit = 1
	c.run()
	return c.failure
}
