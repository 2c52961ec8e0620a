package lab_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/report"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/traffic"
	"github.com/cabrank/cabrank/lab/test/made"
)

var (
	update = flag.Bool("update", false, "write docs/benchmarks.md, with its pictures")
	from   = flag.String("from", "", "with -update: take runs from `FOLDER`/SCENARIO into bench/results before")
)

// The page, and what it is made from: one run of each scenario, by its name.
const (
	benchmarks = "../../../docs/benchmarks.md"
	pictures   = "../../../docs/img/bench-"
	results    = "../../../bench/results/"
	mostResult = 300_000
)

// docs/benchmarks.md says what the runs in bench/results say, and nothing else.
func TestBenchmarks(t *testing.T) {
	want := map[string][]byte{}
	page := pageOf(t, want, func(name string) *report.Run {
		folder, file := results, results+name+".json"
		if *from != "" && result.File(filepath.Join(*from, name)) != filepath.Join(*from, name) {
			folder = filepath.Join(*from, name)
			file = filepath.Join(folder, result.RunFile)
		}
		if _, err := os.Stat(file); err != nil {
			return nil
		}
		r, err := result.Read(file)
		testkit.Must(t, err)
		kept := trimmed(t, folder, r)
		all := 0
		for path, text := range kept {
			want[results+path] = text
			all += len(text)
		}
		testkit.Want(t, all <= mostResult, "of %s there are %d bytes, at most %d are kept", name, all, mostResult)
		return keptRun(t, name, kept)
	})
	want[benchmarks] = page
	old, err := filepath.Glob(pictures + "*.svg")
	testkit.Must(t, err)
	for _, name := range old {
		if want[name] == nil && (!*update || os.Remove(name) != nil) {
			t.Errorf("%s is of no run that is kept: run go test ./internal/lab -update", name)
		}
	}
	for name, text := range want {
		if *update {
			testkit.Must(t, result.Replace(name, text))
		}
		if is, err := os.ReadFile(name); err != nil || !bytes.Equal(is, text) {
			t.Errorf("%s is not what the results say: run go test ./internal/lab -update in lab (%v)", name, err)
		}
	}
}

// Of a run the page has the verdict, figures, a picture, and how to repeat it.
func TestBenchmarkOfARun(t *testing.T) {
	dir := t.TempDir()
	r, err := made.Save(dir, made.Options{Arms: []string{"round-robin", "cabrank"}, Tail: "p90", Rates: []int{70, 80}, Rounds: 12, Seconds: 15, Effect: 0.5, Workers: 3, Seed: 1, Pause: true})
	testkit.Must(t, err)
	r.Version, r.Command = "v1.2.3 0123456789ab", `cabrank-lab run relay --arm "a b"`
	r.Scenario = "relay"
	kept, svgs := trimmed(t, dir, r), map[string][]byte{}
	text := string(pageOf(t, svgs, func(name string) *report.Run {
		if name != "relay" {
			return nil
		}
		return keptRun(t, name, kept)
	}))
	testkit.Says(t, text,
		"\n## relay\n", "**cabrank against round-robin at 80/s: p90 lower by 4", "- cabrank against round-robin at 80/s: p50 lower by 4",
		"| 80/s | cabrank | 12 | ", "(img/bench-relay-1.svg)", "(img/bench-relay-2.svg)", "2026-11-23 04:05 UTC", "commit 0123456789ab",
		"2 cores (Imaginary CPU, Linux 6.1, go1.26).", "`cabrank-lab run relay --arm \"a b\"`", "(../bench/results/relay.json)", "- Not measured: envoy:",
		"\n## policies\n", "No whole run is kept.",
	)
	testkit.Want(t, len(svgs) == 2, "%d pictures", len(svgs))
	testkit.Want(t, strings.Contains(string(svgs[pictures+"relay-1.svg"]), "worker 1 stopped"),
		"the picture has not what was done:\n%s", svgs[pictures+"relay-1.svg"])
	for path, text := range kept {
		testkit.Must(t, result.Replace(filepath.Join(dir, "kept", path), text))
	}
	validate(t, runSchema, filepath.Join(dir, "kept", "relay.json"))
	again, err := result.Read(filepath.Join(dir, "kept", "relay.json"))
	testkit.Must(t, err)
	if again := trimmed(t, filepath.Join(dir, "kept"), again); len(kept) != 3 || !maps.EqualFunc(kept, again, bytes.Equal) {
		t.Errorf("what is kept of what is kept is something else: %q", slices.Sorted(maps.Keys(again)))
	}
}

// pageOf is the page; run returns what is kept of a scenario, or nil. svgs gets its pictures.
func pageOf(t *testing.T, svgs map[string][]byte, run func(name string) *report.Run) []byte {
	t.Helper()
	b := bytes.NewBufferString(`# Benchmarks

<!-- Made by go test ./internal/lab -update, in lab, from bench/results: do not edit. -->

What whole runs of the lab's scenarios have shown. All of it is made from
the runs in [bench/results](../bench/results), and a test holds that it is what they say. How they
are measured is in [lab-method.md](lab-method.md), what figures mean in [lab-run.md](lab-run.md).
A star is on what is not judged: others used the machine meanwhile, or the callers were the limit.
`)
	for _, name := range scenario.Names() {
		s, err := scenario.Builtin(name, nil)
		testkit.Must(t, err)
		fmt.Fprintf(b, "\n## %s\n\n", name)
		if r := run(name); r != nil {
			writeRun(t, b, *r, name, svgs)
			continue
		}
		fmt.Fprintf(b, "%s\n\nNo whole run is kept. It takes about %.0f minutes: `cabrank lab run %s`.\n", s.About+".", s.Estimate().Minutes(), name)
	}
	return b.Bytes()
}

// commitOf is that of a version.
var commitOf = regexp.MustCompile(`[0-9a-f]{12,40}`)

// writeRun writes what a run has shown; one that may not stand there is a fault.
func writeRun(t *testing.T, b *bytes.Buffer, of report.Run, name string, svgs map[string][]byte) {
	t.Helper()
	r := of.Result
	commit := commitOf.FindString(r.Version)
	testkit.Want(t, !r.Quick && !r.Cut && r.Command != "" && commit != "" && !strings.Contains(r.Version, "dirty") && len(r.Machine) != 0,
		"%s: a run that is kept is whole, with commit (%q), machine (%q) and command (%q)", name, r.Version, r.Machine, r.Command)
	shown := *r
	shown.Columns = columnsOf(r)
	d := report.Run{Result: &shown, Record: of.Record}.Document()
	fmt.Fprintf(b, "%s\n\n", d.Lead)
	for i, sentence := range d.Answer {
		if i == 0 {
			sentence = "**" + sentence + "**"
		}
		fmt.Fprintf(b, "%s\n", sentence)
	}
	b.WriteString("\n")
	for _, j := range r.JudgeBars() {
		d.Words = append(d.Words, j.String()+".")
	}
	for _, sentence := range d.Words {
		fmt.Fprintf(b, "- %s\n", sentence)
	}
	for i, p := range picturesOf(&shown, d) {
		file := fmt.Sprintf("%s%s-%d.svg", pictures, name, i+1)
		svgs[file] = svg(t, p)
		fmt.Fprintf(b, "\n![%s](img/%s)\n", strings.NewReplacer("[", "(", "]", ")").Replace(p.Title), filepath.Base(file))
	}
	for _, table := range section(d, "Figures").Tables {
		b.WriteString("\n" + markdown(table))
	}
	where := slices.Clone(r.Machine)
	for _, note := range r.Notes {
		arm, _, _ := strings.Cut(note, ": ")
		if !slices.ContainsFunc(r.Arms, func(a result.Arm) bool { return a.Name == arm }) { // not how each arm is called, which the scenario says
			where = append(where, note)
		}
	}
	fmt.Fprintf(b, "\nBegan %s, took %v, commit %s. %s\n`%s`, seed %d; the figures of each block are in [%s.json](../bench/results/%s.json).\n",
		r.Began.UTC().Format("2006-01-02 15:04 UTC"), r.Took.Round(time.Second), commit, strings.Join(where, " "), r.Command, r.Seed, name, name)
}

// columnsOf are the figures that the page has of a run: those that its scenario shows or
// compares, or else those that most have.
func columnsOf(r *result.Run) (once []string) {
	names := slices.Clone(r.Columns)
	if len(names) == 0 {
		names = []string{"p50", "p95", "total", "errors", "rate", "cpu_all"}
	}
	for _, c := range r.Claims {
		names = append(names, c.Figure)
	}
	for _, bar := range r.Bars {
		names = append(names, bar.Figure)
	}
	for _, name := range append(names, "errors") {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once
}

// picturesOf are that of the answer, and one more: errors over several loads, or else what
// another claim is about.
func picturesOf(r *result.Run, d report.Document) (all []*report.Picture) {
	if d.Picture != nil {
		all = append(all, d.Picture)
	}
	for _, p := range section(d, "Errors").Pictures {
		points := 0
		for _, m := range p.Rows[0].Marks {
			if m.Kind == "dot" && m.Pen == p.Rows[0].Marks[0].Pen {
				points++
			}
		}
		if points > 2 {
			return append(all, p)
		}
	}
	for i, c := range r.Claims {
		other := *r
		other.Claims = slices.Clone(r.Claims)
		for j := range other.Claims {
			other.Claims[j].Primary = i == j
		}
		p := report.Run{Result: &other}.Document().Picture
		if c.Figure != r.Claims[0].Figure && p != nil && (d.Picture == nil || p.Title != d.Picture.Title) {
			return append(all, p)
		}
	}
	return all
}

func section(d report.Document, heading string) report.Section {
	for _, s := range d.Sections {
		if s.Heading == heading {
			return s
		}
	}
	return report.Section{}
}

// markdown is a table.
func markdown(of report.Table) string {
	var b strings.Builder
	row := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	var names, rules []string
	for _, c := range of.Columns {
		names = append(names, c.Name)
		rules = append(rules, map[bool]string{false: "---", true: "--:"}[c.Number])
	}
	row(names)
	row(rules)
	for _, cells := range of.Rows {
		row(cells)
	}
	return b.String()
}

// trimmed is what is kept of a run, by its names in bench/results: the figures that the page
// is made from, to five digits, with a line for each block; and what became of calls over
// time, in a block of each arm, where something is done to them at the load that decides.
func trimmed(t *testing.T, folder string, r *result.Run) map[string][]byte {
	t.Helper()
	head, keep, kept := *r, columnsOf(r), map[string][]byte{}
	head.Blocks = []result.Block{}
	head.Command = regexp.MustCompile(`--out \S+`).ReplaceAllString(head.Command, "--out "+r.Scenario) // a folder is nobody's business
	text, err := json.MarshalIndent(head, "", " ")
	testkit.Must(t, err)
	var lines []string
	over := coursesOf(r)
	for i, b := range r.Blocks {
		raw := b.Raw
		b.Raw, b.Workers, b.Processes, b.Noise = "", nil, nil, rounded(b.Noise)
		if slices.Contains(over, i) && raw != "" {
			b.Raw = fmt.Sprintf("%s/%04d.json", r.Scenario, i+1)
			kept[b.Raw] = course(t, folder, raw)
		}
		figures := map[string]float64{}
		for _, name := range keep {
			if v, known := b.Figures[name]; known {
				figures[name] = rounded(v)
			}
		}
		b.Figures = figures
		for name, v := range b.Late {
			b.Late[name] = rounded(v)
		}
		line, err := json.Marshal(b)
		testkit.Must(t, err)
		lines = append(lines, string(line))
	}
	before, found := strings.CutSuffix(string(text), "[]\n}")
	testkit.Need(t, found, "blocks are not what a run ends with")
	kept[r.Scenario+".json"] = []byte(before + "[\n" + strings.Join(lines, ",\n") + "\n]}\n")
	return kept
}

// coursesOf are the blocks of which a page shows what happened over time: the first of each
// arm that is judged, or the first.
func coursesOf(r *result.Run) []int {
	at := map[string]int{}
	for i := range r.Blocks {
		b := &r.Blocks[i]
		if len(r.Claims) == 0 || len(b.Events) == 0 || b.Load != r.Claims[0].Load {
			continue
		}
		if first, is := at[b.Arm]; !is || !r.Blocks[first].Judged() && b.Judged() {
			at[b.Arm] = i
		}
	}
	return slices.Collect(maps.Values(at))
}

// course is a record without the workers of each interval.
func course(t *testing.T, folder, raw string) []byte {
	t.Helper()
	whole, err := result.ReadRecord(folder, &result.Block{Raw: raw})
	testkit.Must(t, err)
	for i := range whole.Timeline.Intervals {
		whole.Timeline.Intervals[i].Workers = traffic.Shares{}
	}
	text, err := json.Marshal(whole)
	testkit.Must(t, err)
	return append(text, '\n')
}

// keptRun reads what is kept of a run.
func keptRun(t *testing.T, name string, kept map[string][]byte) *report.Run {
	t.Helper()
	r := &result.Run{}
	testkit.Must(t, json.Unmarshal(kept[name+".json"], r))
	return &report.Run{Result: r, Record: func(b *result.Block) (*traffic.Record, error) {
		var record traffic.Record
		if b.Raw == "" {
			return nil, errors.New("it is not kept")
		}
		return &record, json.Unmarshal(kept[b.Raw], &record)
	}}
}

// rounded has five digits.
func rounded(v float64) float64 {
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
	return v
}
