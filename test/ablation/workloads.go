package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	scenario = folder + "/workloads.yml"
	measured = "bench/out/ablation/workloads.json"
	programs = "bin/ablation"
	runs     = "bench/out/ablation/lab"
)

// choose starts the program that an arm of the scenario names by a variable, so that all
// of them take turns in one run.
const choose = "#!/bin/sh\nexec \"${0%/*}/cabrank-${ABLATED:-" + base + "}\" \"$@\"\n"

var ablated = regexp.MustCompile(`ABLATED: ([a-z0-9-]+)`)

// work builds the programs of the scenario, runs it, and keeps the figures.
func work(ctx context.Context, all []*mechanism, flags []string) error {
	text, err := os.ReadFile(scenario)
	if err != nil {
		return err
	}
	wanted := []string{base}
	for _, m := range ablated.FindAllStringSubmatch(string(text), -1) {
		wanted = append(wanted, m[1])
	}
	slices.Sort(wanted)
	if err := build(ctx, all, slices.Compact(wanted)); err != nil {
		return err
	}
	//nolint:gosec // the flags are those of who runs it
	lab := exec.CommandContext(ctx, "bin/cabrank-lab", append([]string{"run", scenario, "--out", runs}, flags...)...)
	chooser, err := filepath.Abs(filepath.Join(programs, "cabrank"))
	if err != nil {
		return err
	}
	lab.Env = append(os.Environ(), "CABRANK_LAB_PROGRAM="+chooser)
	lab.Stdout, lab.Stderr = os.Stdout, os.Stderr
	if err := lab.Run(); err != nil {
		return err
	}
	return keepFigures(filepath.Join(runs, "run.json"))
}

// build makes a program without each of the mechanisms.
func build(ctx context.Context, all []*mechanism, names []string) error {
	c, err := newCopy(ctx)
	if err != nil {
		return err
	}
	defer c.remove(ctx)
	if err := os.MkdirAll(programs, 0o750); err != nil {
		return err
	}
	for _, name := range names {
		m := everything(nil)
		if at := slices.IndexFunc(all, func(m *mechanism) bool { return m.name == name }); at >= 0 {
			m = all[at]
		} else if name != base {
			return fmt.Errorf("%s: there is no %s.diff", scenario, name)
		}
		if err := c.without(ctx, m); err != nil {
			return err
		}
		if _, err := command(ctx, c.in, "make", "build", "BIN="+filepath.Join(c.root, programs, "cabrank-"+name)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(programs, "cabrank"), []byte(choose), 0o700) //nolint:gosec // it is a program
}

// figures are the medians of the figures of one arm at one load.
type figures map[string]float64

// keepFigures writes the medians of a run: by load and arm.
func keepFigures(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var run struct {
		Blocks []struct {
			Arm     string  `json:"arm"`
			Load    string  `json:"load"`
			Figures figures `json:"figures"`
		} `json:"blocks"`
	}
	if err := json.Unmarshal(text, &run); err != nil {
		return err
	}
	values := map[[3]string][]float64{} // by load, arm and figure
	for _, b := range run.Blocks {
		for figure, v := range b.Figures {
			of := [3]string{b.Load, b.Arm, figure}
			values[of] = append(values[of], v)
		}
	}
	medians := map[string]map[string]figures{}
	for of, v := range values {
		load, arm, figure := of[0], of[1], of[2]
		if medians[load] == nil {
			medians[load] = map[string]figures{}
		}
		if medians[load][arm] == nil {
			medians[load][arm] = figures{}
		}
		slices.Sort(v)
		medians[load][arm][figure] = (v[(len(v)-1)/2] + v[len(v)/2]) / 2
	}
	text, err = json.MarshalIndent(medians, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(measured, append(text, '\n'), 0o600)
}

// losses says at which loads an arm is worse by 5 % than the one with all mechanisms:
// answers per second, or the slowest of a hundred, or of twenty where that is not known.
// ran is false if there is no such arm.
func losses(medians map[string]map[string]figures, name string) (lost []string, ran bool) {
	with := "cabrank"
	if strings.HasPrefix(name, "slots-auto") {
		with = "auto"
	}
	const margin = 0.05
	for load, arms := range medians {
		all, less := arms[with], arms[name]
		if all == nil || less == nil {
			continue
		}
		ran = true
		tail := "p99"
		if _, known := all[tail]; !known {
			tail = "p95"
		}
		if by := less[tail] / all[tail]; all[tail] > 0 && by >= 1+margin {
			lost = append(lost, fmt.Sprintf("%s: %s x %.2f", load, tail, by))
		}
		if by := less["rate"] / all["rate"]; all["rate"] > 0 && by <= 1-margin {
			lost = append(lost, fmt.Sprintf("%s: answers x %.2f", load, by))
		}
	}
	slices.Sort(lost)
	return lost, ran
}
