package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// report is the result file: conditions, summary and every run.
type report struct {
	Date      string     `json:"date"`
	Commit    string     `json:"commit"`
	Command   string     `json:"command"`
	Machine   machine    `json:"machine"`
	Peers     []peer     `json:"peers"`
	Workloads []workload `json:"workloads"`
	Rows      []row      `json:"rows"`
	Ratios    []ratio    `json:"ratios"`
	Runs      []run      `json:"runs"`

	root string // of the repository, which no result names
}

// machine is where it was measured.
type machine struct {
	CPU       string `json:"cpu"`
	Cores     int    `json:"cores"`
	Kernel    string `json:"kernel"`
	Go        string `json:"go"`
	Network   string `json:"network"` // private: a namespace of its own; shared
	LoadAtAll string `json:"load_average"`
	ProxyCore int    `json:"proxy_core"`
	OtherCore int    `json:"other_core"`
}

func newReport(o options) *report {
	return &report{
		Date:      time.Now().UTC().Format(time.RFC3339),
		Commit:    commit(o.root),
		Command:   "go run ./bench/runner " + strings.Join(os.Args[1:], " "),
		Peers:     o.peers,
		Workloads: o.workloads,
		root:      o.root,
		Machine: machine{
			CPU: cpuModel(), Cores: cores(), Kernel: firstLine("/proc/sys/kernel/osrelease"), Go: runtime.Version(),
			Network: network(), LoadAtAll: firstLine("/proc/loadavg"), ProxyCore: o.proxyCore, OtherCore: o.otherCore,
		},
	}
}

// commit names what was measured; "none" outside of a repository.
func commit(root string) string {
	c := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
	c.Dir = root
	out, err := c.Output()
	if err != nil {
		return "none"
	}
	return strings.TrimSpace(string(out))
}

func firstLine(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// cpuInfo returns the values of one name in /proc/cpuinfo, one per core. Unlike
// runtime.NumCPU it also sees the cores that this process is not pinned to.
func cpuInfo(name string) (values []string) {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			values = append(values, strings.TrimSpace(value))
		}
	}
	return values
}

func cores() int { return len(cpuInfo("processor")) }

func cpuModel() string {
	models := cpuInfo("model name")
	slices.Sort(models)
	return strings.Join(slices.Compact(models), ", ")
}

// save writes the report as DATE-COMMIT.json; an older file of that name stays
// and the new one gets a number. Paths in the repository begin at its root: a
// result is read on other machines.
func (r *report) save(dir string) (string, error) {
	b, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", err
	}
	if r.root != "" {
		b = bytes.ReplaceAll(b, []byte(r.root+"/"), nil)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	stem := filepath.Join(dir, r.Date[:len("2006-01-02")]+"-"+r.Commit)
	for n := 1; ; n++ {
		path := stem + ".json"
		if n > 1 {
			path = fmt.Sprintf("%s-%d.json", stem, n)
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(append(b, '\n'))
		return path, errors.Join(err, f.Close())
	}
}

// verdict is an error when a run failed or, if asked, when a bar was missed.
func (r *report) verdict(check bool) error {
	for _, run := range r.Runs {
		if run.Error != "" {
			why, _, _ := strings.Cut(run.Error, "\n") // all of it was shown with the run
			return fmt.Errorf("%s on %s is not valid: %s", run.Peer, run.Workload, why)
		}
	}
	for _, q := range r.Ratios {
		if check && q.Most > 0 && q.Median > q.Most {
			return fmt.Errorf("bar missed: cabrank costs %.2f times %s on %s, at most %.2f are allowed", q.Median, q.Beside, q.Workload, q.Most)
		}
	}
	return nil
}
