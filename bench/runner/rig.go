package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/bench/measure"
)

const (
	backends = 4
	// bootTime bounds how long a proxy may take until a call passes.
	bootTime = 10 * time.Second
	// stopTime bounds how long a process may take to end after SIGTERM.
	stopTime = 5 * time.Second
)

// rig has what all runs share: our two programs and a folder to run in.
type rig struct {
	options
	dir        string
	load, echo string
}

// run is one measurement. No run is ever dropped: one that failed has Error.
type run struct {
	Peer     string `json:"peer"`
	Workload string `json:"workload"`
	Repeat   int    `json:"repeat"`
	Command  string `json:"command"`
	LoadArgs string `json:"load_args"`
	Error    string `json:"error,omitempty"`

	BackendCalls []uint64 `json:"backend_calls"` // of each backend, warm-up included
	// Foreign is the share of the proxy's core that others used meanwhile.
	Foreign float64 `json:"foreign_share"`
	measure.Result
}

func newRig(o options) (*rig, error) {
	dir, err := os.MkdirTemp("", "bench-cabrank-")
	if err != nil {
		return nil, err
	}
	r := &rig{options: o, dir: dir, load: filepath.Join(dir, "load"), echo: filepath.Join(dir, "echo")}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", dir, "./bench/load", "./bench/echo")
	build.Dir = o.root
	if out, err := build.CombinedOutput(); err != nil {
		r.remove()
		return nil, fmt.Errorf("build the load client and the backends: %w\n%s", err, out)
	}
	return r, nil
}

func (r *rig) remove() { os.RemoveAll(r.dir) } //nolint:errcheck // a temporary folder

// run starts backends and proxy afresh, measures and stops them.
func (r *rig) run(p peer, w workload, repeat int) run {
	res := run{Peer: p.Name, Workload: w.Name, Repeat: repeat}
	if err := r.measure(p, w, &res); err != nil {
		res.Error = err.Error()
	}
	if res.Error == "" && res.Failed > 0 {
		res.Error = fmt.Sprintf("%d calls failed, the first: %s", res.Failed, res.Failure)
	}
	return res
}

func (r *rig) measure(p peer, w workload, res *run) error {
	ports, err := freeAddresses(backends + 1)
	if err != nil {
		return err
	}
	at := addresses{listen: ports[0], backends: ports[1:]}
	echo, err := r.start(r.otherCore, at, []string{r.echo, "-listen", strings.Join(at.backends, ",")})
	if err != nil {
		return err
	}
	defer func() {
		if err := json.Unmarshal(echo.stop(), &res.BackendCalls); err != nil {
			res.Error = strings.TrimSpace(res.Error + "\nthe backends did not report: " + err.Error() + "\n" + echo.said())
		}
	}()
	command := p.command(at)
	res.Command = strings.Join(command, " ")
	proxy, err := r.start(r.proxyCore, at, command)
	if err != nil {
		return err
	}
	defer proxy.stop()
	if err := r.awaitCall(at.listen); err != nil {
		return fmt.Errorf("no call passed in %v: %w\n%s", bootTime, err, proxy.said())
	}
	args := append(w.args(), "-warmup", r.warmup.String(), "-duration", r.duration.String())
	res.LoadArgs = strings.Join(args, " ")
	args = append(args, "-addr", at.listen, "-pid", strconv.Itoa(proxy.pid()), "-json")
	if res.Result, err = r.callLoad(args); err != nil {
		return fmt.Errorf("%w\n%s", err, proxy.said())
	}
	res.Foreign = foreign(res.Result, r.proxyCore)
	return nil
}

// foreign is the share of a core's time that went to others than the proxy.
func foreign(m measure.Result, core int) float64 {
	if core >= len(m.CoreBusy) || m.Seconds == 0 {
		return 0
	}
	return max(0, (m.CoreBusy[core]-m.CPU)/m.Seconds)
}

// awaitCall waits until single calls pass without failure.
func (r *rig) awaitCall(addr string) error {
	args := []string{"-conns", "1", "-streams", "1", "-warmup", "0s", "-duration", "20ms", "-addr", addr, "-json"}
	for deadline := time.Now().Add(bootTime); ; {
		m, err := r.callLoad(args)
		if err == nil && m.Failed == 0 && m.Calls > 0 {
			return nil
		}
		if time.Now().After(deadline) {
			if err == nil {
				err = errors.New(m.Failure)
			}
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// callLoad runs the load client. Failed calls are in the result, not an error.
func (r *rig) callLoad(args []string) (m measure.Result, err error) {
	var stderr bytes.Buffer
	c := exec.Command(r.load, args...) // inherits the runner's core
	c.Stderr = &stderr
	out, err := c.Output()
	if jsonErr := json.Unmarshal(out, &m); jsonErr != nil {
		return m, fmt.Errorf("load client: %w: %s", errors.Join(err, jsonErr), bytes.TrimSpace(stderr.Bytes()))
	}
	return m, nil
}

// freeAddresses finds loopback ports that are free now. All are taken before
// the first is given back, so that they differ.
func freeAddresses(n int) (addrs []string, err error) {
	var taken []net.Listener
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		taken = append(taken, l)
		addrs = append(addrs, l.Addr().String())
	}
	for _, l := range taken {
		l.Close()
	}
	return addrs, nil
}

// line tells about a run while the others are still to come.
func (r run) line() string {
	head := fmt.Sprintf("%d %-7s %-12s", r.Repeat+1, r.Workload, r.Peer)
	if r.Error != "" {
		return head + " FAILED: " + r.Error
	}
	return fmt.Sprintf("%s %7.3f us CPU per call, %8d calls, p50 %6.0f us, p99 %7.0f us, foreign %2.0f %%, per backend %v",
		head, r.CPUPerCall, r.Calls, r.P50, r.P99, 100*r.Foreign, slices.Clone(r.BackendCalls))
}
