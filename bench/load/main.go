// Command load makes gRPC-shaped calls, checks every answer and prints calls,
// latency, bytes and the CPU that a process needed for each call. It needs
// backends that answer as bench/echo does.
//
//	load -addr 127.0.0.1:8080 -conns 4 -streams 25 -duration 5s -pid 1234   a fixed number of calls in flight
//	load -addr 127.0.0.1:8080 -conns 4 -streams 100 -rate 4000 -duration 5s so many calls per second
//	load -addr 127.0.0.1:8080 -conns 10000 -idle -duration 2s -pid 1234     memory for idle connections
//	load -addr 127.0.0.1:8080 -first -duration 10s                          when the first call is answered
//
// It exits with 1 when a call failed.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/cabrank/cabrank/internal/lab/measure"
	"github.com/cabrank/cabrank/internal/lab/rawh2"
)

// plan is what to do. It is never changed once the load runs.
type plan struct {
	addr           string
	conns, streams int           // connections, and calls in flight on each (the most, in an open loop)
	size           int           // bytes of a message without its prefix
	answers        int           // messages in the answer to each call
	burst          int           // most calls in one write, 0 without bound
	rate           float64       // calls per second of an open loop, 0 for a closed one
	idle, first    bool          // other things to measure, see the flags
	warmup         time.Duration // before anything is counted
	duration       time.Duration // of the counted part
	indexed        bool          // header blocks with the dynamic table
	timeout        string        // grpc-timeout, "" for none
	pid            int           // whose CPU is counted, with its children; 0 for nobody's
	backends       int           // process of the backends, 0 if not known
}

func main() {
	p, asJSON := flags()
	if err := p.check(); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(2)
	}
	r, err := p.measure()
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(1)
	}
	if asJSON {
		err = json.NewEncoder(os.Stdout).Encode(r)
	} else {
		_, err = fmt.Println(r)
	}
	if err != nil || r.Failed > 0 || r.Calls == 0 {
		os.Exit(1)
	}
}

func (p plan) measure() (measure.Result, error) {
	switch {
	case p.first:
		return firstAnswer(p)
	case p.idle:
		return idle(p)
	default:
		return run(p)
	}
}

func flags() (p plan, asJSON bool) {
	flag.StringVar(&p.addr, "addr", "127.0.0.1:8080", "where to connect")
	flag.IntVar(&p.conns, "conns", 4, "connections")
	flag.IntVar(&p.streams, "streams", 25, "calls in flight on each connection; with -rate the most, and later calls wait")
	flag.IntVar(&p.size, "size", 16, "bytes of a message, 16 to 16379")
	flag.IntVar(&p.answers, "answers", 1, "messages in the answer to each call")
	flag.IntVar(&p.burst, "burst", 0, "start at most so many calls with one write; 0 starts all that can (callers in step)")
	flag.Float64Var(&p.rate, "rate", 0, "open loop: start so many calls per second at random moments, whether or not others are answered; latency counts from the moment a call was due")
	flag.BoolVar(&p.idle, "idle", false, "make one call on each connection, leave all open and idle for -duration, read the memory of -pid, make one more call on each")
	flag.BoolVar(&p.first, "first", false, "try until one call is answered, for at most -duration, and say when that was")
	flag.DurationVar(&p.warmup, "warmup", 500*time.Millisecond, "time before the counted part")
	flag.DurationVar(&p.duration, "duration", 3*time.Second, "length of the counted part")
	flag.BoolVar(&p.indexed, "indexed", false, "use the dynamic table for request headers, as gRPC clients do; otherwise literals")
	flag.StringVar(&p.timeout, "timeout", "", "send this grpc-timeout (such as 5S)")
	flag.IntVar(&p.pid, "pid", 0, "count the CPU and the memory of this process and its children")
	flag.IntVar(&p.backends, "backends", 0, "this process has the backends: its CPU and the client's are told, too")
	flag.BoolVar(&asJSON, "json", false, "print one JSON object")
	flag.Parse()
	return p, asJSON
}

func (p plan) check() error {
	switch {
	case flag.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", flag.Arg(0))
	case p.size < rawh2.MinMessage || p.size > rawh2.MaxMessage:
		return fmt.Errorf("-size %d: want %d to %d", p.size, rawh2.MinMessage, rawh2.MaxMessage)
	case p.conns < 1 || p.streams < 1 || p.answers < 1 || p.burst < 0:
		return fmt.Errorf("-conns, -streams and -answers must be at least 1, -burst at least 0")
	case p.rate < 0 || p.rate > maxRate:
		return fmt.Errorf("-rate %v: want 0 to %d", p.rate, maxRate)
	case p.idle && p.first, p.rate > 0 && (p.idle || p.first):
		return fmt.Errorf("-rate, -idle and -first exclude each other")
	case p.duration <= 0 || p.warmup < 0:
		return fmt.Errorf("-duration must be above 0, -warmup not below")
	}
	return nil
}
