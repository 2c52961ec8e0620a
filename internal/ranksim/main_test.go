package ranksim

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// No test leaves a goroutine behind. With -v the values of the bars are printed
// as a table in Markdown.
func TestMain(m *testing.M) { testkit.VerifyMain(withReport{m}) }

// withReport prints the report after the tests.
type withReport struct{ *testing.M }

func (m withReport) Run() int {
	code := m.M.Run()
	if testing.Verbose() {
		found.print(os.Stdout)
	}
	return code
}

// finding is what one measure of one bar came to.
type finding struct {
	bar, setting, what string
	limit              limit
	bySeed             []float64
	ratios             [][3]float64 // p50, p99 and p99.9 over those of the other system, by seed
}

// findings are those of all bars.
type findings struct {
	sync.Mutex

	all []*finding
}

var found findings

// add takes down a value of one seed.
func (f *findings) add(like finding, value float64, ratios [3]float64) {
	f.Lock()
	defer f.Unlock()
	i := slices.IndexFunc(f.all, func(x *finding) bool {
		return x.bar == like.bar && x.setting == like.setting && x.what == like.what
	})
	if i < 0 {
		i = len(f.all)
		f.all = append(f.all, &like)
	}
	f.all[i].bySeed = append(f.all[i].bySeed, value)
	if ratios != [3]float64{} {
		f.all[i].ratios = append(f.all[i].ratios, ratios)
	}
}

// print writes the table: a row for each measure, with the value of each seed
// and the one that is nearest to the limit, or beyond it.
func (f *findings) print(w io.Writer) {
	f.Lock()
	defer f.Unlock()
	if len(f.all) == 0 {
		return
	}
	slices.SortStableFunc(f.all, func(a, b *finding) int {
		return cmp.Or(strings.Compare(a.bar, b.bar), strings.Compare(a.setting, b.setting))
	})
	fmt.Fprintf(w, "\n%d calls for each of %d seeds.\n\n", barCalls, barSeeds)
	fmt.Fprintln(w, "| bar | setting | measure | must be | worst | by seed | p50 / p99 / p99.9, mean |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|")
	for _, x := range f.all {
		fmt.Fprintf(w, "| %s | %s | %s | %v | %.3f | %s | %s |\n",
			x.bar, x.setting, x.what, x.limit, x.worst(), numbers(x.bySeed, ", "), x.mean())
	}
	fmt.Fprintln(w)
}

// worst returns the value of the seed that did worst.
func (x *finding) worst() float64 {
	if x.limit.least {
		return slices.Min(x.bySeed)
	}
	return slices.Max(x.bySeed)
}

func (x *finding) mean() string {
	if len(x.ratios) == 0 {
		return ""
	}
	means := make([]float64, 3)
	for _, r := range x.ratios {
		for i := range means {
			means[i] += r[i] / float64(len(x.ratios))
		}
	}
	return numbers(means, " / ")
}

func numbers(values []float64, between string) string {
	all := make([]string, len(values))
	for i, v := range values {
		all[i] = fmt.Sprintf("%.3f", v)
		if v > 1e6 {
			all[i] = "∞" // not answered
		}
	}
	return strings.Join(all, between)
}
