package load

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/cabrank/cabrank/lab/internal/measure"
	"github.com/cabrank/cabrank/lab/internal/rawh2"
)

// atATime is how many connections are opened together: enough to be quick, and
// far below any backlog.
const atATime = 32

// idle reads the memory of a process before and while it holds idle
// connections that have made one call each. Another call on each shows that
// none was closed meanwhile.
func idle(p Plan) (measure.Result, error) {
	p.Streams = 1
	before, err := p.memory()
	if err != nil {
		return measure.Result{}, err
	}
	began := time.Now()
	clients := make([]*client, p.Conns)
	sig, form := newSignals(), newForm(p)
	defer func() { closeAll(clients) }()
	err = each(p.Conns, func(i int) error {
		conn, err := net.DialTimeout("tcp", p.Addr, grace)
		if err != nil {
			return err
		}
		clients[i] = newClient(rawh2.NewConn(conn, true, rawh2.SmallReadBuffer), uint32(i), p, form, sig)
		return clients[i].makeCalls(1)
	})
	if err != nil {
		clients = slices.DeleteFunc(clients, func(c *client) bool { return c == nil }) // not opened
		return measure.Result{}, err
	}
	time.Sleep(p.Duration)
	after, err := p.memory()
	if err != nil {
		return measure.Result{}, err
	}
	again := each(p.Conns, func(i int) error { return clients[i].makeCalls(2) })
	r := summarize(p, sig, clients)
	r.Seconds, r.Calls = time.Since(began).Seconds(), uint64(2*p.Conns)-r.Failed
	r.Before, r.After = before, after
	return r, again
}

func (p Plan) memory() (*measure.Memory, error) {
	if p.PID == 0 {
		return &measure.Memory{}, nil
	}
	m, err := measure.ReadMemory(p.PID)
	return &m, err
}

// makeCalls makes calls, one after the other, until it has made n in all.
func (c *client) makeCalls(n uint64) error {
	c.limit = n
	c.conn.SetReadDeadline(time.Now().Add(grace)) //nolint:errcheck // a dead connection fails its call
	c.run()
	if c.completed.Load() < n && c.failed == 0 {
		return fmt.Errorf("connection %d: a call got no answer within %v", c.num, grace)
	}
	return nil
}

// each calls f for 0 to n-1, some at a time, and returns the first error.
func each(n int, f func(i int) error) error {
	var wg sync.WaitGroup
	errs := make(chan error, atATime)
	for first := range atATime {
		wg.Go(func() {
			for i := first; i < n; i += atATime {
				if err := f(i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs // nil when there is none
}
