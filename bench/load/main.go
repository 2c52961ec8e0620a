// Command load keeps a fixed number of gRPC-shaped calls in flight, checks
// every answer and prints calls, latency and the CPU that a process needed for
// each call. It needs backends that answer as bench/echo does.
//
//	load -addr 127.0.0.1:8080 -conns 4 -streams 25 -size 16 -duration 5s -pid 1234
//
// It exits with 1 when a call failed.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/cabrank/cabrank/bench/rawh2"
)

// plan is what to do. It is never changed once the load runs.
type plan struct {
	addr           string
	conns, streams int           // connections, and calls in flight on each
	size           int           // bytes of a message without its prefix
	answers        int           // messages in the answer to each call
	burst          int           // most calls in one write, 0 without bound
	warmup         time.Duration // before anything is counted
	duration       time.Duration // of the counted part
	indexed        bool          // header blocks with the dynamic table
	timeout        string        // grpc-timeout, "" for none
	pid            int           // whose CPU is counted, with its children; 0 for nobody's
}

func main() {
	p, asJSON := flags()
	if err := p.check(); err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(2)
	}
	r, err := run(p)
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

func flags() (p plan, asJSON bool) {
	flag.StringVar(&p.addr, "addr", "127.0.0.1:8080", "where to connect")
	flag.IntVar(&p.conns, "conns", 4, "connections")
	flag.IntVar(&p.streams, "streams", 25, "calls in flight on each connection")
	flag.IntVar(&p.size, "size", 16, "bytes of a message, 16 to 16379")
	flag.IntVar(&p.answers, "answers", 1, "messages in the answer to each call")
	flag.IntVar(&p.burst, "burst", 0, "start at most so many calls with one write; 0 starts all that can (callers in step)")
	flag.DurationVar(&p.warmup, "warmup", 500*time.Millisecond, "time before the counted part")
	flag.DurationVar(&p.duration, "duration", 3*time.Second, "length of the counted part")
	flag.BoolVar(&p.indexed, "indexed", false, "use the dynamic table for request headers, as gRPC clients do; otherwise literals")
	flag.StringVar(&p.timeout, "timeout", "", "send this grpc-timeout (such as 5S)")
	flag.IntVar(&p.pid, "pid", 0, "count the CPU of this process and its children")
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
	case p.duration <= 0 || p.warmup < 0:
		return fmt.Errorf("-duration must be above 0, -warmup not below")
	}
	return nil
}
