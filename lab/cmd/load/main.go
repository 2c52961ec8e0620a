// Command load makes gRPC-shaped calls, checks every answer and prints calls,
// latency, bytes and the CPU that a process needed for each call. It needs
// backends that answer as the command echo does.
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

	"github.com/cabrank/cabrank/lab/internal/load"
)

func main() {
	p, asJSON := flags()
	err := p.Check()
	if flag.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "load:", err)
		os.Exit(2)
	}
	r, err := p.Run()
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

func flags() (p load.Plan, asJSON bool) {
	flag.StringVar(&p.Addr, "addr", "127.0.0.1:8080", "where to connect")
	flag.IntVar(&p.Conns, "conns", 4, "connections")
	flag.IntVar(&p.Streams, "streams", 25, "calls in flight on each connection; with -rate the most, and later calls wait")
	flag.IntVar(&p.Size, "size", 16, "bytes of a message, 16 to 16379")
	flag.IntVar(&p.Answers, "answers", 1, "messages in the answer to each call")
	flag.IntVar(&p.Burst, "burst", 0, "start at most so many calls with one write; 0 starts all that can (callers in step)")
	flag.Float64Var(&p.Rate, "rate", 0, "open loop: start so many calls per second at random moments, whether or not others are answered; latency counts from the moment a call was due")
	flag.BoolVar(&p.Idle, "idle", false, "make one call on each connection, leave all open and idle for -duration, read the memory of -pid, make one more call on each")
	flag.BoolVar(&p.First, "first", false, "try until one call is answered, for at most -duration, and say when that was")
	flag.DurationVar(&p.Warmup, "warmup", 500*time.Millisecond, "time before the counted part")
	flag.DurationVar(&p.Duration, "duration", 3*time.Second, "length of the counted part")
	flag.BoolVar(&p.Indexed, "indexed", false, "use the dynamic table for request headers, as gRPC clients do; otherwise literals")
	flag.StringVar(&p.Timeout, "timeout", "", "send this grpc-timeout (such as 5S)")
	flag.IntVar(&p.PID, "pid", 0, "count the CPU and the memory of this process and its children")
	flag.IntVar(&p.Backends, "backends", 0, "this process has the backends: its CPU and the client's are told, too")
	flag.BoolVar(&asJSON, "json", false, "print one JSON object")
	flag.Parse()
	return p, asJSON
}
