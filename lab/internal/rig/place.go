package rig

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/testkit/ports"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

type place struct {
	host string
	port int
}

func (p place) addr() string { return net.JoinHostPort(p.host, strconv.Itoa(p.port)) }

// places finds some for all workers, and a port for the front. A name stands for
// addresses and has one port: behind one, workers differ by address.
func (s Spec) places() (workers []place, front place, err error) {
	if s.Front.Kind == scenario.FrontDNAT { // nobody else is in its network
		for i := range s.Workers {
			workers = append(workers, place{testbed.Pod(i).String(), s.port()})
		}
		return workers, place{testbed.Service, s.port()}, nil
	}
	hosts := make([]string, len(s.Workers))
	for i := range hosts {
		hosts[i] = "127.0.0.1"
		if s.Front.Kind == scenario.FrontDNS {
			hosts[i] = fmt.Sprintf("127.0.%d.%d", i/250, 1+i%250)
		}
	}
	needed := len(hosts) + 1
	if s.Front.Kind == scenario.FrontDNS {
		needed = 2
	}
	first, err := ports.Free(needed, hosts...)
	if err != nil {
		return nil, front, err
	}
	front = place{"127.0.0.1", first}
	for i, host := range hosts {
		port := first + 1 + i
		if s.Front.Kind == scenario.FrontDNS {
			port = first + 1
			if s.Workers[0].Port != 0 {
				port = s.Workers[0].Port
			}
		} else if s.Workers[i].Port != 0 {
			port = s.Workers[i].Port
		}
		workers = append(workers, place{host, port})
	}
	return workers, front, nil
}

// podPort is that of workers which have an address each, unless another is asked for.
const podPort = 8080

// port is that of all workers where they differ by address.
func (s Spec) port() int { return cmp.Or(s.Workers[0].Port, podPort) }

// told is the worker with what is replaced in its command and environment.
func (w Worker) told(index int, at place) (command, env []string) {
	command, env = filled(w.Command, w.Env,
		"{addr}", at.addr(), "{host}", at.host, "{port}", strconv.Itoa(at.port),
		"{index}", strconv.Itoa(index), "{worker}", workerName(index), "{slots}", strconv.Itoa(w.Slots))
	return command, append(env,
		"CABRANK_ADDR="+at.addr(), "PORT="+strconv.Itoa(at.port), "CABRANK_WORKER="+workerName(index),
		"CABRANK_WORKER_INDEX="+strconv.Itoa(index),
		"CABRANK_SLOTS="+strconv.Itoa(w.Slots), "RAILS_MAX_THREADS="+strconv.Itoa(w.Slots),
	)
}

// filled is a command and an environment, NAME=VALUE, with marks replaced: each is followed
// by what stands for it.
func filled(command, env []string, marks ...string) (filledCommand, filledEnv []string) {
	fill := strings.NewReplacer(marks...).Replace
	for _, word := range command {
		filledCommand = append(filledCommand, fill(word))
	}
	for _, setting := range env {
		name, value, _ := strings.Cut(setting, "=")
		filledEnv = append(filledEnv, name+"="+fill(value))
	}
	return filledCommand, filledEnv
}
