package load

import (
	"net"
	"os"
	"sync"
	"time"

	"github.com/cabrank/cabrank/lab/internal/measure"
	"github.com/cabrank/cabrank/lab/internal/rawh2"
)

// grace is how long calls in flight may take after the load has stopped before
// they count as failed.
const grace = 5 * time.Second

func run(p Plan) (measure.Result, error) {
	sig := newSignals()
	clients, err := connect(p, sig)
	defer closeAll(clients)
	if err != nil {
		return measure.Result{}, err
	}
	wait := begin(p, clients, sig)
	from, to, err := p.count(clients, sig)
	sig.stop.Store(true)
	for _, c := range clients {
		c.conn.Do(c.setEnd) //nolint:errcheck // a dead connection has ended already
	}
	if waitErr := wait(); err == nil {
		err = waitErr
	}
	if err != nil {
		return measure.Result{}, err
	}
	r := summarize(p, sig, clients)
	r.Between(from, to)
	return p.withMemory(r)
}

// count lets the clients warm up and then samples at both ends of the counted
// part.
func (p Plan) count(clients []*client, sig *signals) (from, to measure.Sample, err error) {
	time.Sleep(p.Warmup)
	sig.from.Store(int64(sig.now()))
	if from, err = take(p, clients); err != nil {
		return from, to, err
	}
	time.Sleep(p.Duration)
	to, err = take(p, clients)
	sig.until.Store(int64(sig.now()))
	return from, to, err
}

// connect opens all connections before the first call is made. On an error it
// returns those that are open.
func connect(p Plan, sig *signals) (clients []*client, err error) {
	form := newForm(p)
	for i := range p.Conns {
		conn, err := net.DialTimeout("tcp", p.Addr, grace)
		if err != nil {
			return clients, err
		}
		clients = append(clients, newClient(rawh2.NewConn(conn, true, rawh2.ReadBuffer), uint32(i), p, form, sig))
	}
	return clients, nil
}

// begin starts one goroutine for each client and, for an open loop, the pacer.
// wait returns when all have ended.
func begin(p Plan, clients []*client, sig *signals) (wait func() error) {
	var wg sync.WaitGroup
	var pacerErr error
	for _, c := range clients {
		wg.Go(c.run)
	}
	if p.Rate > 0 {
		pacer := newPacer(p.Rate, clients, sig)
		wg.Go(func() { pacerErr = pacer.run() })
	}
	return func() error {
		wg.Wait()
		return pacerErr
	}
}

// setEnd has a client that waits for nothing end now, another one when its
// calls have ended or after the grace.
func (c *client) setEnd() error {
	if c.lanes.used == 0 {
		return c.conn.SetReadDeadline(time.Now())
	}
	return c.conn.SetReadDeadline(time.Now().Add(grace))
}

func closeAll(clients []*client) {
	for _, c := range clients {
		c.conn.Close()
	}
}

func take(p Plan, clients []*client) (measure.Sample, error) {
	var calls uint64
	var traffic measure.Traffic
	for _, c := range clients {
		calls += c.completed.Load()
		received, sent := c.conn.Bytes()
		traffic.Received += received
		traffic.Sent += sent
	}
	if p.Backends == 0 {
		return measure.Take(calls, traffic, p.PID)
	}
	return measure.Take(calls, traffic, p.PID, p.Backends, os.Getpid())
}

// summarize adds up what the clients have found. A call that was due and never
// sent counts with the time for which it has waited, as a lag, too.
func summarize(p Plan, sig *signals, clients []*client) measure.Result {
	var unsent []time.Duration
	r := measure.Result{Conns: p.Conns, Streams: p.Streams, Size: p.Size, Answers: p.Answers, Rate: p.Rate}
	for _, c := range clients {
		for _, at := range c.due.left() {
			if sig.counts(at) {
				unsent = append(unsent, time.Duration(sig.until.Load())-at)
			}
		}
		r.Failed += c.failed
		if r.Failure == "" {
			r.Failure = c.failure
		}
	}
	sig.kept.addLatencies(unsent)
	sig.kept.addLags(unsent)
	r.Unsent = uint64(len(unsent))
	r.Keep(sig.kept.latencies, sig.kept.lags)
	return r
}

// withMemory adds what the process holds now.
func (p Plan) withMemory(r measure.Result) (measure.Result, error) {
	if p.PID == 0 {
		return r, nil
	}
	m, err := measure.ReadMemory(p.PID)
	r.After = &m
	return r, err
}
