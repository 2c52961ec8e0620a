package scrape

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// counted is what a process has counted: for each label, and in a histogram up to 1, up
// to 2, and in all.
type counted struct {
	labels [4]int
	counts [3]int
}

func (c *counted) count(r *rand.Rand) {
	for n := range c.labels {
		c.labels[n] += r.IntN(3)
	}
	for range r.IntN(5) {
		for n := r.IntN(3); n < 3; n++ {
			c.counts[n]++
		}
	}
}

func (c *counted) add(other counted) {
	for n := range c.labels {
		c.labels[n] += other.labels[n]
	}
	for n := range c.counts {
		c.counts[n] += other.counts[n]
	}
}

// page shows it in any order.
func (c *counted) page(r *rand.Rand) string {
	lines := []string{
		"# TYPE c_total counter", "# TYPE h histogram", fmt.Sprintf("h_count %d", c.counts[2]), fmt.Sprintf("h_sum %d", 3*c.counts[2]),
		fmt.Sprintf("h_bucket{le=\"1\"} %d", c.counts[0]), fmt.Sprintf("h_bucket{le=\"2\"} %d", c.counts[1]), fmt.Sprintf("h_bucket{le=\"+Inf\"} %d", c.counts[2]),
	}
	for n, count := range c.labels {
		lines = append(lines, fmt.Sprintf("c_total{n=\"%d\"} %d", n, count))
	}
	r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	return strings.Join(lines, "\n") + "\n"
}

// merged is the page that has the sums.
func (c *counted) merged() string {
	var b strings.Builder
	for n, count := range c.labels {
		fmt.Fprintf(&b, "c_total{n=\"%d\"} %d\n", n, count)
	}
	fmt.Fprintf(&b, "h_bucket{le=\"1\"} %d\nh_bucket{le=\"2\"} %d\nh_bucket{le=\"+Inf\"} %d\nh_sum %d\nh_count %d\n",
		c.counts[0], c.counts[1], c.counts[2], 3*c.counts[2], c.counts[2])
	return b.String()
}

// What was counted stays counted (D33): processes count, end, come and begin again at zero,
// at random, and the page is the arithmetic sum of all that they have shown (D31). What one
// shows that has left counts for nothing.
func TestSumsAtRandom(t *testing.T) {
	type lived struct {
		process *Process
		counted
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := NewStore(Options{})
		var live []*lived
		var all counted
		show := func(m *lived) { read(t, m.process, m.page(r)) }
		for range 60 {
			switch n := r.IntN(8); {
			case n == 0 || len(live) == 0:
				live = append(live, &lived{process: s.Join("w")})
				show(live[len(live)-1])
			case n == 1:
				i := r.IntN(len(live))
				all.add(live[i].counted)
				live[i].process.Leave()
				if r.IntN(2) == 0 {
					live[i].count(r)
					show(live[i])
				}
				live = slices.Delete(live, i, i+1)
			case n == 2:
				m := live[r.IntN(len(live))]
				all.add(m.counted)
				m.counted = counted{}
				show(m)
			default:
				m := live[r.IntN(len(live))]
				m.count(r)
				show(m)
			}
		}
		for _, m := range live {
			all.add(m.counted)
		}
		got, want := samples(shown(t, s)), all.merged()
		testkit.Need(t, got == want, "seed %d: page is\n%swant\n%s", seed, got, want)
	}
}
