package peers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/testkit/oneslot"
)

// kind is how a workload is measured.
type kind string

const (
	kindClosed kind = "closed" // calls in flight are kept constant; then an open loop for latency
	kindOpen   kind = "open"   // a fixed rate, beside a client without a proxy
	kindIdle   kind = "idle"   // memory for connections that do nothing
	kindStart  kind = "start"  // time until the first answer, size on disk
	kindShards kind = "shards" // one shard and two at one fixed rate
	kindQueue  kind = "queue"  // an open loop on workers that run one call at a time
	kindRefuse kind = "refuse" // the same, and workers that refuse what comes beside it
	kindRaw    kind = "raw"    // the client and one backend, each on a core, and no proxy
)

// workload is what the load client does; a new one is a new row here.
type workload struct {
	Name    string  `json:"name"`
	Text    string  `json:"text"`
	Kind    kind    `json:"kind"`
	Conns   int     `json:"conns"`
	Streams int     `json:"streams"`         // calls in flight on each connection
	Size    int     `json:"size"`            // bytes of a message
	Answers int     `json:"answers"`         // messages in an answer
	Burst   int     `json:"burst"`           // most calls in one write of a caller, 0 without bound
	Indexed bool    `json:"indexed"`         // request headers by the dynamic table
	Rate    float64 `json:"rate,omitempty"`  // calls per second of a fixed rate
	Cores   int     `json:"cores"`           // that the proxy may use, one thread for each
	Queue   *queue  `json:"queue,omitempty"` // of kindQueue
	Bars    []bar   `json:"bars,omitempty"`
}

// deadline is the grpc-timeout of every call: callers should set one, and a
// relay must see to it.
const deadline = "5S"

// rawRate is a little above the bar: random moments are not always as many as were
// asked for.
const rawRate = 61_000

// openStreams is the most calls in flight on a connection of an open loop:
// what every proxy allows. Later calls wait in the client, and that counts.
const openStreams = 100

func allWorkloads() []workload {
	return []workload{
		{
			Name: "u16", Text: "unary calls of 16 bytes, 4 connections x 25 in flight",
			Kind: kindClosed, Cores: 1, Conns: 4, Streams: 25, Size: 16, Answers: 1, Bars: closedBars(1.8, 0.4),
		},
		{
			Name: "u16c50", Text: "unary calls of 16 bytes, 50 connections x 1 in flight",
			Kind: kindClosed, Cores: 1, Conns: 50, Streams: 1, Size: 16, Answers: 1, Bars: closedBars(1, 0.85),
		},
		{
			Name: "u10k", Text: "unary calls of 10 KiB, 4 connections x 25 in flight",
			Kind: kindClosed, Cores: 1, Conns: 4, Streams: 25, Size: 10240, Answers: 1, Bars: closedBars(1.5, 0.8),
		},
		{
			Name: "s100", Text: "streams of 100 answers of 16 bytes, 4 connections x 5 in flight",
			Kind: kindClosed, Cores: 1, Conns: 4, Streams: 5, Size: 16, Answers: 100, Bars: closedBars(1.6, 0.5),
		},
		{
			Name: "r4k", Text: "4,000 unary calls of 16 bytes per second at random moments, 4 connections",
			Kind: kindOpen, Cores: 1, Conns: 4, Streams: openStreams, Size: 16, Answers: 1, Rate: 4000,
			Bars: []bar{{What: whatAdded, Beside: direct, Most: 0.15}},
		},
		idleWorkload("idle1k", 1000),
		idleWorkload("idle10k", 10_000),
		{
			Name: "start", Text: "from exec to the first answer; size on disk",
			Kind: kindStart, Cores: 1, Conns: 1, Streams: 1, Size: 16, Answers: 1,
		},
		{
			Name: "shards", Text: "50,000 unary calls of 16 bytes per second, 16 connections, cabrank with 1 and 2 shards on the same 2 cores",
			Kind: kindShards, Conns: 16, Streams: openStreams, Size: 16, Answers: 1, Rate: 50_000, Cores: 2,
			Bars: []bar{{What: whatCPU, Beside: "cabrank-1shard", Most: 1.15}},
		},
		{
			Name: "shards1", Text: "as shards, on 1 core: what the second shard costs by itself",
			Kind: kindShards, Conns: 16, Streams: openStreams, Size: 16, Answers: 1, Rate: 50_000, Cores: 1,
		},
		{
			Name: "u16b8", Text: "as u16, at most 8 calls started with one write (callers out of step)",
			Kind: kindClosed, Cores: 1, Conns: 4, Streams: 25, Size: 16, Answers: 1, Burst: 8,
		},
		{
			Name: "u16x", Text: "as u16, request headers by the dynamic table",
			Kind: kindClosed, Cores: 1, Conns: 4, Streams: 25, Size: 16, Answers: 1, Indexed: true,
		},
		{
			Name: "raw", Text: fmt.Sprintf("no proxy: unary calls of 16 bytes, 4 connections x 25 in flight; then %d per second at random moments", rawRate),
			Kind: kindRaw, Cores: 1, Conns: 4, Streams: 25, Size: 16, Answers: 1, Rate: rawRate, Bars: rawBars(),
		},
		queueWorkload("q70", queue{Load: 0.7, Calls: queueCalls, Busy: oneslot.Run}),
		queueWorkload("q140", queue{Load: 1.4, Calls: queueCalls, Timeout: queueTimeout, Busy: oneslot.Run}),
		queueWorkload("q140skip", queue{Load: 1.4, Calls: queueCalls, Timeout: queueTimeout, Busy: oneslot.Skip}),
		queueWorkload("q70refuse", queue{Load: 0.7, Calls: queueCalls, Busy: oneslot.Refuse, Lag: queueLag}),
		queueWorkload("q140refuse", queue{Load: 1.4, Calls: queueCalls, Timeout: queueTimeout, Busy: oneslot.Refuse, Lag: queueLag}),
	}
}

func idleWorkload(name string, conns int) workload {
	return workload{
		Name: name, Text: fmt.Sprintf("%d idle connections that have made one call each", conns),
		Kind: kindIdle, Cores: 1, Conns: conns, Streams: 1, Size: 16, Answers: 1,
		Bars: []bar{{What: whatPerConn, Most: 8}},
	}
}

// defaultWorkloads are those of the bars; the others are asked for by name.
const defaultWorkloads = "u16,u16c50,u10k,s100,r4k,idle1k,idle10k,start,shards"

// args are the load client's flags in one phase, with the rate of an open loop.
func (w workload) args(in phase, rate float64) []string {
	args := []string{
		"-conns", strconv.Itoa(w.Conns), "-size", strconv.Itoa(w.Size), "-answers", strconv.Itoa(w.Answers), fmt.Sprintf("-indexed=%t", w.Indexed),
		"-timeout", deadline,
	}
	switch in {
	case phaseMax:
		return append(args, "-streams", strconv.Itoa(w.Streams), "-burst", strconv.Itoa(w.Burst))
	case phaseRate:
		return append(args, "-streams", strconv.Itoa(openStreams), "-rate", strconv.FormatFloat(rate, 'f', 0, 64))
	case phaseIdle:
		return append(args, "-idle")
	default:
		return append(args, "-first")
	}
}

func (w workload) name() string { return w.Name }
func (p peer) name() string     { return p.Name }

type named interface{ name() string }

func names[T named](all []T) (list []string) {
	for _, one := range all {
		list = append(list, one.name())
	}
	return list
}

// choose picks by names that are separated by commas, in their order.
func choose[T named](list string, all []T) (chosen []T, err error) {
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(one T) bool { return one.name() == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown name %q: want %s", name, strings.Join(names(all), ", "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
