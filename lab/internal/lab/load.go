// Package lab joins the parts of the lab into what its commands do. It measures from
// outside: what it calls, it calls as any user does.
package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cabrank/cabrank/lab/internal/caller"
	"github.com/cabrank/cabrank/lab/internal/goal"
	"github.com/cabrank/cabrank/lab/internal/method"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/testbed"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// Load is a load on one method of a service that somebody else runs.
type Load struct {
	// Options are whom to call, and how.
	caller.Options

	// Calls are those of the first method, and Also further ones of the service, each with
	// its share of the calls and connections of its own.
	Calls caller.Calls
	Also  []Also
	Plan  traffic.Plan // when to call
}

// Prepared is a load that can run: what is called is known, and the service answers. Close
// it when it is of no more use.
type Prepared struct {
	client        traffic.Client
	what, address string // what is called, and where
	how           string // how it is called, in a line
	close         func()
}

// String says what is called, and where.
func (p *Prepared) String() string { return p.what + " at " + p.address }

// Close ends the connections.
func (p *Prepared) Close() { p.close() }

// Prepare finds the method, makes the requests and connects.
//
// Errors: one line that says what and where, and what to do instead.
func (l Load) Prepare(ctx context.Context) (*Prepared, error) {
	if err := caller.CheckTarget(l.Target); err != nil {
		return nil, err
	}
	m, client, err := l.open(ctx)
	if err != nil {
		return nil, err
	}
	return &Prepared{
		client: client, what: strings.TrimPrefix(m.Path, "/") + l.others(), address: l.Target,
		how: client.String() + "; " + m.Kind() + ".", close: client.Close,
	}, nil
}

// others names the further methods.
func (l Load) others() (text string) {
	for _, a := range l.Also {
		text += fmt.Sprintf(", %.3g %% %s", 100*a.Share, a.Method)
	}
	return text
}

// open makes the client for all methods, and returns the first of these.
func (l Load) open(ctx context.Context) (*method.Method, caller.Caller, error) { //nolint:ireturn // that of the way
	l.Calls.Data.Seed = l.Plan.Seed
	first, client, err := caller.Open(ctx, l.Options, l.Calls)
	if err != nil || len(l.Also) == 0 {
		return first, client, err
	}
	all, left := &mixed{seed: l.Plan.Seed}, 1.0
	for _, a := range l.Also {
		left -= a.Share
	}
	all.add(first.Path, left, client)
	for _, a := range l.Also {
		a.Files, a.Data.Seed = l.Calls.Files, l.Plan.Seed
		m, client, err := caller.Open(ctx, l.Options, a.Calls)
		if err != nil {
			all.Close()
			return nil, nil, err
		}
		all.add(m.Path, a.Share, client)
	}
	return first, all, nil
}

// Run makes the calls of a plan and reports what came of them. watch is called about once a
// second; it may be nil. When ctx is cancelled, the report is of what was measured until then.
//
// Errors: of the machine. What the service does is a figure.
func (p *Prepared) Run(ctx context.Context, plan traffic.Plan, watch func(traffic.Live)) (report.Load, error) {
	load := traffic.New(plan, p.client)
	if watch != nil {
		defer traffic.Follow(load.Live, watch)()
	}
	began, used := time.Now(), testbed.OwnCPU()
	record, err := load.Run(ctx)
	if err != nil {
		return report.Load{}, err
	}
	busy := float64(testbed.OwnCPU()-used) / float64(time.Since(began)) / float64(runtime.GOMAXPROCS(0))
	return report.Load{
		Method: p.what, Address: p.address, Began: began, Record: record,
		Busy: busy, Limited: record.GeneratorLimits(busy),
		Client:  []string{p.how},
		Machine: []string{fmt.Sprintf("The generator ran on %s and used %.0f %% of those that it may use.", cores(), 100*busy)},
	}, nil
}

// Machine describes in a line where the lab runs.
func Machine() string { return "The lab ran on " + cores() + "." }

func cores() string {
	m := testbed.ThisMachine()
	text := fmt.Sprintf("%d cores (%s, %s, %s)", m.Cores, m.CPU, m.Kernel, m.Go)
	if m.CPU == "" {
		text = fmt.Sprintf("%d cores (%s/%s, %s)", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, m.Go)
	}
	if host, err := os.Hostname(); err == nil {
		text += " of " + host
	}
	return text
}

// probeLength is how long one caller asks the service between the runs of a search.
const probeLength = time.Second

// Find looks for the highest rate at which thresholds hold. Runs are as o says, but for
// their rate; told is called after each.
//
// Errors: as those of goal.Find, and of o.
func (p *Prepared) Find(ctx context.Context, o traffic.Options, first float64, thresholds goal.Thresholds, told func(goal.Step)) (goal.Result, error) {
	probe, err := traffic.Options{Callers: 1, Duration: probeLength, Timeout: o.Timeout, Seed: o.Seed}.Plan()
	if err != nil {
		return goal.Result{}, err
	}
	if _, err := p.Run(ctx, probe, nil); err != nil { // the first calls to a service are slow
		return goal.Result{}, err
	}
	return goal.Find(ctx, goal.Options{
		Thresholds: thresholds, First: first,
		Told: told,
		Run: func(ctx context.Context, rate float64) (goal.Run, error) {
			o.Rate = strconv.FormatFloat(rate, 'f', -1, 64)
			plan, err := o.Plan()
			if err != nil {
				return goal.Run{}, err
			}
			done, err := p.Run(ctx, plan, nil)
			return goal.Run{Record: done.Record, Busy: done.Busy}, err
		},
		Probe: func(ctx context.Context) (*traffic.Record, error) {
			done, err := p.Run(ctx, probe, nil)
			return done.Record, err
		},
	})
}

// The files of a load, in one folder.
const (
	ReportFile = "report.html"
	ResultFile = "load.json"
)

// ResultSchema names the keys of Result and what they mean.
const ResultSchema = "cabrank.lab.load/2"

// Result is what load.json holds; docs/lab-load.md has its keys.
type Result struct {
	Schema string `json:"schema"` // ResultSchema
	report.Load
}

// Kept is what a command keeps of what it has found: a page, if there is one, and values.
type Kept struct {
	Document   *report.Document
	values     any
	page, file string // their names
}

// OfLoad keeps a load.
func OfLoad(l report.Load) Kept {
	d := l.Document()
	return Kept{&d, Result{ResultSchema, l}, ReportFile, ResultFile}
}

// OfSearch keeps a search, without a page.
func OfSearch(r goal.Result) Kept { return Kept{values: r, file: "find.json"} }

// JSON is what the file of the values has in it.
func (k Kept) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(k.values, "", " ")
	return append(text, '\n'), err
}

// Save writes it into a folder. Files of the same names are replaced; one that cannot be
// written leaves the old one.
func (k Kept) Save(folder string) error {
	text, err := k.JSON()
	if err != nil {
		return err
	}
	err = result.Replace(filepath.Join(folder, k.file), text)
	if k.Document != nil {
		err = errors.Join(err, result.Replace(filepath.Join(folder, k.page), k.Document.HTML()))
	}
	return err
}

// Also is a further method that a load calls.
type Also struct {
	caller.Calls

	Share float64 // of all calls, above 0 and below 1
}

// ParseAlso reads a share, a method and its requests: 20% demo.Jobs/List {"page": 1}.
//
// Errors: one line that says what is wanted.
func ParseAlso(text string) (a Also, err error) {
	share, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	name, data, _ := strings.Cut(strings.TrimSpace(rest), " ")
	digits, isPercent := strings.CutSuffix(share, "%")
	percent, err := strconv.ParseFloat(digits, 64)
	data = strings.TrimSpace(data)
	if !isPercent || err != nil || !(percent > 0 && percent < 100) || name == "" || data == "" {
		return a, fmt.Errorf("--also %.80q: want a share, a method and its requests, such as '20%% demo.Jobs/List {}'", text)
	}
	return Also{Share: percent / 100, Calls: caller.Calls{Method: name, Data: method.Data{Name: "--also", Text: []byte(data)}}}, nil
}

// choice keeps the draw of the method apart from those of its request.
const choice = 0x6d69786564

// mixed calls several methods. Which one a call is for depends on its number and the seed
// alone, as its request does.
type mixed struct {
	caller.Caller // of the first method, which has what the others leave

	seed uint64
	all  []*part
}

type part struct {
	caller.Caller

	name             string
	upTo             float64 // the sum of the shares up to its own
	answered, failed atomic.Int64
}

func (m *mixed) add(path string, share float64, client caller.Caller) {
	p := &part{Caller: client, name: strings.TrimPrefix(path, "/"), upTo: share}
	if len(m.all) == 0 {
		m.Caller = client
	} else {
		p.upTo += m.all[len(m.all)-1].upTo
	}
	m.all = append(m.all, p)
}

func (m *mixed) Call(ctx context.Context, call traffic.Call) traffic.Answer {
	at := rand.New(rand.NewPCG(m.seed^choice, call.Number)).Float64()
	p := m.all[0]
	for _, next := range m.all[1:] {
		if at >= p.upTo {
			p = next
		}
	}
	a := p.Call(ctx, call)
	if a.Code == 0 {
		p.answered.Add(1)
	} else {
		p.failed.Add(1)
	}
	return a
}

func (m *mixed) Counts() (all []traffic.Count) {
	for _, p := range m.all {
		all = append(all, traffic.Count{Name: p.name + ", answered", N: p.answered.Load()}, traffic.Count{Name: p.name + ", failed", N: p.failed.Load()})
	}
	return all
}

func (m *mixed) Opened() (n int64) {
	for _, p := range m.all {
		n += p.Opened()
	}
	return n
}

func (m *mixed) Close() {
	for _, p := range m.all {
		p.Close()
	}
}
