package peers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// report is the result file: conditions, summary and every run.
type report struct {
	Date      string     `json:"date"`
	Commit    string     `json:"commit"`
	Command   string     `json:"command"`
	Quick     bool       `json:"quick,omitempty"` // too short to be quoted
	Machine   machine    `json:"machine"`
	Peers     []peer     `json:"peers"`
	Workloads []workload `json:"workloads"`
	LeftOut   []string   `json:"left_out,omitempty"` // what this machine does not allow
	Missed    int        `json:"bars_missed"`
	NotValid  int        `json:"bars_not_valid"`
	Checks    []check    `json:"checks"`
	Rows      []row      `json:"rows"`
	Runs      []run      `json:"-"`
	Series    []*series  `json:"runs"` // Runs as they are kept, filled in by save
	// Histograms is the file beside this one with those of every run.
	Histograms string `json:"histograms,omitempty"`

	root string // of the repository, which no result names
}

func newReport(o options) *report {
	return &report{
		Date:      time.Now().UTC().Format(time.RFC3339),
		Commit:    commit(o.root),
		Command:   "bin/lab/lab " + strings.Join(os.Args[1:], " "),
		Quick:     o.quick,
		Peers:     append(append([]peer(nil), o.peers...), o.shards...),
		Workloads: o.workloads,
		LeftOut:   o.leftOut(),
		Machine:   machineOf(o),
		root:      o.root,
	}
}

// machine is where it was measured, and who had which core.
type machine struct {
	testbed.Machine

	ProxyCore  int `json:"proxy_core"`
	OtherCore  int `json:"other_core"`
	SecondCore int `json:"second_core"` // of the proxy, on the workload shards
}

func machineOf(o options) machine {
	return machine{testbed.ThisMachine(o.priority), o.proxyCore, o.otherCore, o.secondCore}
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

// runsOf returns the runs of one proxy on one workload in one phase, in the
// order of the repeats.
func (r *report) runsOf(workload, peer string, in phase) (runs []run) {
	for _, run := range r.Runs {
		if run.Workload == workload && run.Peer == peer && run.Phase == in {
			runs = append(runs, run)
		}
	}
	return runs
}

// summarize fills in Rows and Checks from Runs.
func (r *report) summarize(o options) {
	for _, w := range o.workloads {
		phases := o.phases(w)
		for _, p := range o.peersOf(w) {
			r.Rows = append(r.Rows, summarizeRow(w, p, r.runsOf(w.Name, p.Name, phases[0]), r.runsOf(w.Name, p.Name, phaseRate)))
		}
		r.Checks = append(r.Checks, r.checksOf(w, o)...)
	}
	for _, c := range r.Checks {
		switch c.Verdict {
		case missed:
			r.Missed++
		case notValid:
			r.NotValid++
		}
	}
}

// encode rounds the numbers of the report and renders it for its file. Paths in
// the repository begin at its root: a result is read on other machines.
func (r *report) encode() (b []byte, err error) {
	round(reflect.ValueOf(r))
	if r.Series, err = seriesOf(r.Runs); err != nil {
		return nil, err
	}
	if b, err = json.Marshal(r); err != nil {
		return nil, err
	}
	if r.root != "" {
		b = bytes.ReplaceAll(b, []byte(r.root+"/"), nil)
	}
	return append(breakLines(b), '\n'), nil
}

// save writes the report as DATE-COMMIT.json and the histograms as
// DATE-COMMIT.hlog; older files of that name stay and the new ones get a number.
func (r *report) save(dir string, kept *histograms) (path string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	name := r.Date[:len("2006-01-02")] + "-" + r.Commit
	for n := 1; ; n++ {
		r.Histograms = name + ".hlog"
		if n > 1 {
			r.Histograms = fmt.Sprintf("%s-%d.hlog", name, n)
		}
		log := filepath.Join(dir, r.Histograms)
		path = strings.TrimSuffix(log, ".hlog") + ".json"
		if err = r.write(path); err == nil {
			if err = kept.saveAs(log); err != nil {
				os.Remove(path) //nolint:errcheck // the reason why it goes is told
			}
		}
		if !errors.Is(err, os.ErrExist) {
			return path, err
		}
	}
}

// write fails with os.ErrExist when there is a file of that name.
func (r *report) write(path string) error {
	b, err := r.encode()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// verdict is an error when a run failed or, if asked, when a bar was not held.
func (r *report) verdict(strict bool) error {
	for _, run := range r.Runs {
		if run.Error != "" {
			why, _, _ := strings.Cut(run.Error, "\n") // all of it was shown with the run
			return fmt.Errorf("%s on %s is not valid: %s", run.Peer, run.Workload, why)
		}
	}
	for _, c := range r.Checks {
		if strict && (c.Verdict == missed || c.Verdict == notValid) {
			return fmt.Errorf("%s: %v", c.Workload, c)
		}
	}
	return nil
}
