package rig

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// cabrankFront is `cabrank run`, as anybody starts it: with the workers as upstreams,
// or with those that it starts itself.
type cabrankFront struct {
	base
	config string           // its file
	socket string           // by which it is asked
	groups []*testbed.Group // those of the places for workers that it starts
}

// sparePlaces are how many more places for workers there may be than workers from the
// beginning: some come later, and a roll starts new ones beside the old.
const sparePlaces = 8

func (f *cabrankFront) start(ctx context.Context, backends []string) error {
	spec := f.rig.spec
	first := spec.Workers[0]
	if i := slices.IndexFunc(spec.Workers, func(w Worker) bool { return w.Slots != first.Slots }); i >= 0 {
		return fmt.Errorf("%s has %d slots and %s %d: cabrank has one number for all", workerName(0), first.Slots, workerName(i), spec.Workers[i].Slots)
	}
	command := []string{
		f.rig.spec.Programs.Cabrank, "run", "--config", f.config, "--listen", f.target(), "--slots", strconv.Itoa(first.Slots),
		"--control", f.socket,
		"--probes", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log-level", "warn", "--log-format", "text",
	}
	if spec.Front.Policy != "" {
		command = append(command, "--balance", spec.Front.Policy)
	}
	env := spec.Front.Env
	if spec.Front.Starts {
		command = append(command, "--workers", strconv.Itoa(f.rig.present()), "--start-port", strconv.Itoa(f.rig.places[0].port))
		command = append(append(command, spec.Front.Flags...), "--")
		enter, err := f.enterPlaces(first.CPU)
		if err != nil {
			return err
		}
		command = append(command, enter...)
		if first.Cores != "" {
			command = append(command, "taskset", "-c", first.Cores)
		}
		command = append(command, first.Command...)
		env = append(slices.Clone(env), first.Env...)
		backends = nil
	} else {
		command = append(command, spec.Front.Flags...)
	}
	if err := f.write(backends); err != nil {
		return err
	}
	if err := f.run(ctx, "cabrank", testbed.Program{Command: command, Env: env, Dir: first.Dir, Cores: spec.Front.Cores}); err != nil {
		return err
	}
	return f.allReady(ctx, f.rig.present())
}

// allReady waits until so many workers take calls: cabrank itself begins with the first.
func (f *cabrankFront) allReady(ctx context.Context, wanted int) error {
	return f.process.until(ctx, func() error {
		status, err := f.status(ctx)
		if err != nil {
			return err
		}
		ready := status.Ready
		for _, u := range status.Upstreams {
			if u.State == "ready" {
				ready++
			}
		}
		if ready < wanted {
			return fmt.Errorf("cabrank has %d of %d workers ready", ready, wanted)
		}
		return nil
	})
}

// write makes the file that it reads: the rest is on its command line.
func (f *cabrankFront) write(backends []string) error {
	list, err := json.Marshal(backends) // is YAML, too
	if err != nil {
		return err
	}
	text := ""
	if len(backends) > 0 {
		text = "upstreams: " + string(list) + "\n"
	}
	if f.rig.spec.Front.TLS == scenario.TLSItself {
		text += fmt.Sprintf("tls: [{cert: %[1]q, key: %[1]q}]\n", f.rig.cert())
	}
	return os.WriteFile(f.config, []byte(text), 0o600)
}

func (f *cabrankFront) change(ctx context.Context, backends []string) error {
	if f.rig.spec.Front.Starts {
		_, err := f.ask(ctx, "scale", strconv.Itoa(len(backends)))
		return err
	}
	if err := f.write(backends); err != nil {
		return err
	}
	if _, err := f.ask(ctx, "reload"); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, f.rig.spec.Ready)
	defer cancel()
	return f.allReady(limited, len(backends))
}

func (f *cabrankFront) roll(ctx context.Context) error {
	_, err := f.ask(ctx, "restart")
	return err
}

func (f *cabrankFront) ask(ctx context.Context, command string, args ...string) (string, error) {
	line := append([]string{command, "--control", f.socket}, args...)
	out, err := exec.CommandContext(ctx, f.rig.spec.Programs.Cabrank, line...).CombinedOutput()
	if err != nil {
		text := strings.TrimSpace(string(out))
		return "", fmt.Errorf("cabrank %s: %w: %s", command, err, text[strings.LastIndexByte(text, '\n')+1:])
	}
	return string(out), nil
}

type cabrankStatus struct {
	Ready   int `json:"ready"`
	Workers []struct {
		Name string `json:"name"`
		PID  int    `json:"pid"`
	} `json:"workers"`
	Upstreams []struct {
		State string `json:"state"`
	} `json:"upstreams"`
}

func (f *cabrankFront) status(ctx context.Context) (s cabrankStatus, err error) {
	out, err := f.ask(ctx, "status", "--json")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		return s, fmt.Errorf("cabrank status: %w", err)
	}
	return s, nil
}

// enterPlaces makes control groups for the workers that it starts, and returns the
// command by which each goes into that of its place.
func (f *cabrankFront) enterPlaces(cores float64) (command []string, err error) {
	const mark = "place-"
	for i := range len(f.rig.spec.Workers) + sparePlaces {
		group, err := f.rig.newGroup(mark+strconv.Itoa(i), cores)
		if err != nil || group == nil {
			return nil, err
		}
		f.groups = append(f.groups, group)
	}
	for _, word := range f.groups[0].Enter() {
		command = append(command, strings.Replace(word, "/"+mark+"0/", "/"+mark+"{index}/", 1))
	}
	return command, nil
}

// usage tells what cabrank has used apart from the workers that it has started. Without
// control groups a worker that has ended takes what it has used with it.
func (f *cabrankFront) usage() (all []result.Process) {
	if f.process == nil || !f.rig.spec.Front.Starts {
		return f.base.usage()
	}
	running := testbed.Children(f.process.now().PID(), "CABRANK_WORKER_INDEX")
	for i := range len(f.rig.spec.Workers) + sparePlaces {
		u := result.Process{Role: fmt.Sprintf("worker %d", i+1), PID: running[strconv.Itoa(i)]}
		if u.PID > 0 {
			use, _ := testbed.ReadUse(u.PID) // it may be ending
			u.CPU, u.RSS, u.PeakRSS = use.CPU, use.RSS, use.PeakRSS
		}
		if len(f.groups) > 0 {
			counted(&u, f.groups[i])
		}
		if u.PID > 0 || u.CPU > 0 {
			all = append(all, u)
		}
	}
	front := result.Process{Role: "front", PID: f.process.now().PID()}
	alone, _ := testbed.ReadAlone(front.PID) // it may have ended
	front.CPU, front.RSS, front.PeakRSS = alone.CPU, alone.RSS, alone.PeakRSS
	counted(&front, f.process.group)
	return append(all, front)
}
