package peers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/measure"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

const (
	backends = 4
	// bootTime bounds how long a proxy may take until a call passes.
	bootTime = 10 * time.Second
	// idleTime is how long idle connections are left alone before the memory
	// is read.
	idleTime = 2 * time.Second
)

// rig has what all runs share: our two programs and a folder to run in.
type rig struct {
	options
	dir        string
	load, echo string
	oneslot    string // both ends of the workloads of kindQueue
}

func newRig(o options) (*rig, error) {
	dir, err := os.MkdirTemp("", "lab-cabrank-")
	if err != nil {
		return nil, err
	}
	r := &rig{options: o, dir: dir, load: filepath.Join(dir, "load"), echo: filepath.Join(dir, "echo"), oneslot: filepath.Join(dir, "oneslot")}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", dir, "./cmd/load", "./cmd/echo", "./cmd/oneslot")
	build.Dir = filepath.Join(o.root, "lab")
	if out, err := build.CombinedOutput(); err != nil {
		r.remove()
		return nil, fmt.Errorf("build the clients and the backends: %w\n%s", err, out)
	}
	return r, nil
}

func (r *rig) remove() { os.RemoveAll(r.dir) } //nolint:errcheck // a temporary folder

// run starts backends and proxy afresh, measures and stops them.
func (r *rig) run(j job) run {
	res := run{Peer: j.peer.Name, Workload: j.workload.Name, Phase: j.phase, Repeat: j.repeat}
	measure := r.withBackends
	if j.workload.Queue != nil {
		measure = r.withWorkers
	}
	if err := measure(j, &res); err != nil {
		res.Error = err.Error()
	}
	if res.Error == "" && res.Failed > 0 {
		res.Error = fmt.Sprintf("%d calls failed, the first: %s", res.Failed, res.Failure)
	}
	return res
}

func (r *rig) withBackends(j job, res *run) error {
	at, err := addressesFor(j.peer, r.dir)
	if err != nil {
		return err
	}
	core := r.otherCore
	if j.workload.Kind == kindRaw {
		core = r.proxyCore
	}
	echo, err := testbed.Start(r.dir, strconv.Itoa(core), nil, []string{r.echo, "-listen", strings.Join(at.backends, ",")})
	if err != nil {
		return err
	}
	defer echo.Stop()
	switch {
	case j.peer.Name == direct:
		at.listen = at.backends[0]
		err = r.underLoad(j, at, nil, echo, res)
	case j.phase == phaseStart:
		err = r.untilFirst(j, at, res)
	default:
		err = r.withProxy(j, at, echo, res)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, echo.Said())
	}
	var counts []measure.BackendCount
	if err := json.Unmarshal(echo.Stop(), &counts); err != nil {
		return fmt.Errorf("the backends did not report: %w\n%s", err, echo.Said())
	}
	res.addBackends(counts)
	return nil
}

// startProxy starts it and notes the command.
func (r *rig) startProxy(j job, at addresses, res *run) (*testbed.Child, error) {
	command, err := j.peer.command(r.dir, at)
	if err != nil {
		return nil, err
	}
	cores := strconv.Itoa(r.proxyCore)
	if j.workload.Cores == 2 {
		cores += "," + strconv.Itoa(r.secondCore)
	}
	env := append([]string{fmt.Sprintf("GOMAXPROCS=%d", j.workload.Cores)}, at.environment()...)
	proxy, err := testbed.Start(r.dir, cores, append(env, j.peer.Env...), command)
	if err == nil {
		res.Command = proxy.Shown
	}
	return proxy, err
}

func (r *rig) withProxy(j job, at addresses, echo *testbed.Child, res *run) error {
	proxy, err := r.startProxy(j, at, res)
	if err != nil {
		return err
	}
	defer proxy.Stop()
	if err := r.underLoad(j, at, proxy, echo, res); err != nil {
		return fmt.Errorf("%w\n%s", err, proxy.Said())
	}
	return nil
}

// underLoad waits until calls pass and runs the load client. Without a proxy
// nobody's CPU is counted.
func (r *rig) underLoad(j job, at addresses, proxy, echo *testbed.Child, res *run) error {
	if _, err := r.callLoad([]string{"-first", "-duration", bootTime.String(), "-addr", at.listen, "-json"}); err != nil {
		return err
	}
	duration := r.duration
	if j.phase == phaseIdle {
		duration = idleTime
	}
	args := append(j.workload.args(j.phase, j.rate), "-warmup", r.warmup.String(), "-duration", duration.String())
	res.LoadArgs = strings.Join(args, " ")
	args = append(args, "-addr", at.listen, "-backends", strconv.Itoa(echo.PID()), "-json")
	if proxy != nil {
		args = append(args, "-pid", strconv.Itoa(proxy.PID()))
	}
	var err error
	if res.Result, err = r.callLoad(args); err != nil {
		return err
	}
	switch {
	case j.workload.Kind == kindRaw:
		res.Foreign = besideRig(res.Result, r.proxyCore, r.otherCore)
	case proxy != nil && j.workload.Cores == 1: // on two it is not alone
		res.Foreign = foreign(res.Result, r.proxyCore)
	}
	return nil
}

// untilFirst measures the time from exec to the first answer. The client
// tries from before on.
func (r *rig) untilFirst(j job, at addresses, res *run) error {
	args := append(j.workload.args(j.phase, 0), "-duration", bootTime.String())
	res.LoadArgs = strings.Join(args, " ")
	type answer struct {
		measure.Result
		err error
	}
	first := make(chan answer, 1)
	go func() { // ends with the client, which is waited for
		m, err := r.callLoad(append(args, "-addr", at.listen, "-json"))
		first <- answer{m, err}
	}()
	time.Sleep(clientStart)
	began := time.Now()
	proxy, err := r.startProxy(j, at, res)
	if err != nil {
		<-first
		return err
	}
	defer proxy.Stop()
	got := <-first
	if got.err != nil {
		return fmt.Errorf("%w\n%s", got.err, proxy.Said())
	}
	res.Result = got.Result
	res.StartMillis = float64(got.FirstAnswer-began.UnixNano()) / 1e6
	m, err := measure.ReadMemory(proxy.PID())
	res.After = &m
	return err
}

// clientStart is ample for the client to make its first try, in vain.
const clientStart = 100 * time.Millisecond

// foreign is the share of a core's time that went to others than the proxy.
func foreign(m measure.Result, core int) float64 {
	if core >= len(m.CoreBusy) || m.Seconds == 0 {
		return 0
	}
	return max(0, (m.CoreBusy[core]-m.CPU)/m.Seconds)
}

// besideRig is the time of cores that went to others than client and backends, as a
// share of one core.
func besideRig(m measure.Result, cores ...int) float64 {
	share := -m.RigShare
	for _, core := range cores {
		if core >= len(m.CoreBusy) || m.Seconds == 0 {
			return 0
		}
		share += m.CoreBusy[core] / m.Seconds
	}
	return max(0, share)
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
