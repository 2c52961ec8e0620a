package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// workload is what the load client does; a new one is a new row here.
type workload struct {
	Name    string `json:"name"`
	Text    string `json:"text"`
	Conns   int    `json:"conns"`
	Streams int    `json:"streams"` // calls in flight on each connection
	Size    int    `json:"size"`    // bytes of a message
	Answers int    `json:"answers"` // messages in an answer
	Burst   int    `json:"burst"`   // most calls in one write of a caller, 0 without bound
	Indexed bool   `json:"indexed"` // request headers by the dynamic table
	Bars    []bar  `json:"bars,omitempty"`
}

// bar is the most that cabrank may cost, as a multiple of another proxy.
type bar struct {
	Beside string  `json:"beside"`
	Most   float64 `json:"most"`
}

func allWorkloads() []workload {
	return []workload{
		{
			Name: "u16", Text: "unary calls of 16 bytes, 4 connections x 25 in flight",
			Conns: 4, Streams: 25, Size: 16, Answers: 1,
			Bars: []bar{{"haproxy-tcp", 2}, {"nghttpx", 0.5}},
		},
		{
			Name: "u16b8", Text: "as u16, at most 8 calls started with one write (callers out of step)",
			Conns: 4, Streams: 25, Size: 16, Answers: 1, Burst: 8,
			Bars: []bar{{"haproxy-tcp", 2}, {"nghttpx", 0.5}},
		},
		{
			Name: "u16c50", Text: "unary calls of 16 bytes, 50 connections x 1 in flight",
			Conns: 50, Streams: 1, Size: 16, Answers: 1,
			Bars: []bar{{"haproxy-tcp", 1.1}},
		},
		{
			Name: "u16x", Text: "as u16, request headers by the dynamic table",
			Conns: 4, Streams: 25, Size: 16, Answers: 1, Indexed: true,
		},
		{
			Name: "u10k", Text: "unary calls of 10 KiB, 4 connections x 25 in flight",
			Conns: 4, Streams: 25, Size: 10240, Answers: 1,
		},
		{
			Name: "s100", Text: "streams of 100 answers of 16 bytes, 4 connections x 5 in flight",
			Conns: 4, Streams: 5, Size: 16, Answers: 100,
		},
	}
}

// args are the load client's flags.
func (w workload) args() []string {
	return []string{
		"-conns", strconv.Itoa(w.Conns), "-streams", strconv.Itoa(w.Streams),
		"-size", strconv.Itoa(w.Size), "-answers", strconv.Itoa(w.Answers), "-burst", strconv.Itoa(w.Burst), fmt.Sprintf("-indexed=%t", w.Indexed),
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
