package main

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/bench/measure"
)

// grace is how long calls in flight may take after the load has stopped before
// they count as failed.
const grace = 5 * time.Second

// signals is what the run tells its clients.
type signals struct {
	measure atomic.Bool // keep latencies
	stop    atomic.Bool // start no more calls
}

func run(p plan) (measure.Result, error) {
	var sig signals
	clients, wait, err := connect(p, &sig)
	if err != nil {
		return measure.Result{}, err
	}
	time.Sleep(p.warmup)
	sig.measure.Store(true)
	from, err := take(p, clients)
	if err != nil {
		return measure.Result{}, err
	}
	time.Sleep(p.duration)
	to, err := take(p, clients)
	if err != nil {
		return measure.Result{}, err
	}
	sig.measure.Store(false)
	sig.stop.Store(true)
	for _, c := range clients {
		c.conn.SetReadDeadline(time.Now().Add(grace)) //nolint:errcheck // a dead connection has ended already
	}
	wait()
	return summarize(p, clients, from, to), nil
}

// connect opens all connections before the first call is made, then starts
// one goroutine for each; wait returns when all have ended.
func connect(p plan, sig *signals) (clients []*client, wait func(), err error) {
	form := newForm(p)
	for i := range p.conns {
		conn, err := net.DialTimeout("tcp", p.addr, grace)
		if err != nil {
			return nil, nil, err
		}
		clients = append(clients, newClient(conn, uint32(i), p, form, sig))
	}
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(c.run)
	}
	return clients, wg.Wait, nil
}

func take(p plan, clients []*client) (measure.Sample, error) {
	var calls uint64
	for _, c := range clients {
		calls += c.completed.Load()
	}
	return measure.Take(calls, p.pid)
}

func summarize(p plan, clients []*client, from, to measure.Sample) measure.Result {
	var all measure.Latencies
	r := measure.Result{Conns: p.conns, Streams: p.streams, Size: p.size, Answers: p.answers}
	for _, c := range clients {
		all.Merge(&c.latencies)
		r.Failed += c.failed
		if r.Failure == "" {
			r.Failure = c.failure
		}
	}
	r.Between(from, to)
	r.Latency(&all)
	return r
}
