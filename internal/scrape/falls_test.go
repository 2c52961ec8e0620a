package scrape

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

const (
	upPage   = "# TYPE up_total counter\nup_total 1\n"
	jobsPage = "# TYPE jobs_total counter\njobs_total{q=\"x\"} "
)

// A page without one of its families, as of a collector that fails now and then, takes
// nothing away: rate() would see the next one as an increase of all.
func TestFamilyThatIsNotOnOnePage(t *testing.T) {
	s := NewStore(Options{})
	a, b := s.Join("worker-1"), s.Join("worker-2")
	read(t, a, upPage+jobsPage+"1000\n")
	read(t, b, upPage+jobsPage+"1000\n")
	read(t, a, upPage)
	expect(t, s, "jobs_total{q=\"x\"} 2000\nup_total 2\n")
	read(t, a, upPage+jobsPage+"1001\n")
	expect(t, s, "jobs_total{q=\"x\"} 2001\nup_total 2\n")
	read(t, a, upPage)
	a.Leave()
	expect(t, s, "jobs_total{q=\"x\"} 2001\nup_total 2\n")
}

// Nor does a type that is left out once.
func TestTypeThatIsNotOnOnePage(t *testing.T) {
	s := NewStore(Options{})
	a := s.Join("worker-1")
	read(t, a, jobsPage+"1000\n")
	read(t, a, "jobs_total{q=\"x\"} 1001\n")
	expect(t, s, "jobs_total{q=\"x\"} 1001\n")
}

// A label set that the program removes stays when a family comes that was not there.
func TestNewFamilyAfterALabelSetIsGone(t *testing.T) {
	s := NewStore(Options{})
	a := s.Join("worker-1")
	read(t, a, jobsPage+"1000\njobs_total{q=\"y\"} 5\n")
	read(t, a, "# TYPE jobs_total counter\njobs_total{q=\"y\"} 5\n")
	read(t, a, "# TYPE jobs_total counter\njobs_total{q=\"y\"} 6\n# TYPE new_total counter\nnew_total 1\n")
	expect(t, s, "jobs_total{q=\"x\"} 1000\njobs_total{q=\"y\"} 6\nnew_total 1\n")
	a.Leave()
	expect(t, s, "jobs_total{q=\"x\"} 1000\njobs_total{q=\"y\"} 6\nnew_total 1\n")
}

// A histogram that is not on a page once stays, too.
func TestHistogramThatIsNotOnOnePage(t *testing.T) {
	s := NewStore(Options{})
	a := s.Join("worker-1")
	read(t, a, histogramPage("1", "2"))
	want := samples(shown(t, s))
	read(t, a, upPage)
	a.Leave()
	got := samples(shown(t, s))
	testkit.Want(t, strings.HasPrefix(got, want), "page is\n%swant\n%s", got, want)
}

// histogramPage has ten values in each bucket.
func histogramPage(bounds ...string) string {
	var b strings.Builder
	b.WriteString("# TYPE h histogram\n")
	for n, le := range bounds {
		fmt.Fprintf(&b, "h_bucket{le=%q} %d\n", le, 10*(n+1))
	}
	all := 10 * (len(bounds) + 1)
	fmt.Fprintf(&b, "h_bucket{le=\"+Inf\"} %d\nh_sum 5\nh_count %d\n", all, all)
	return b.String()
}

// A release has other buckets. While it rolls those that are shared are shown, then the
// new ones; what was counted before is below the next bound that it had.
func TestOtherBucketsAfterARelease(t *testing.T) {
	s := NewStore(Options{})
	a, b := s.Join("worker-1"), s.Join("worker-2")
	read(t, a, histogramPage("0.1", "0.5", "1"))
	read(t, b, histogramPage("0.1", "0.5", "1"))
	wantConflicts := func(want int) {
		t.Helper()
		n := s.Stats().Conflicts.Bounds
		testkit.Want(t, int(n) == want, "%d conflicts of bounds, want %d", n, want)
	}
	wantConflicts(0)
	a.Leave()
	read(t, s.Join("worker-1"), histogramPage("0.05", "0.25", "2.5"))
	expect(t, s, "h_bucket{le=\"+Inf\"} 120\nh_sum 15\nh_count 120\n")
	wantConflicts(1)
	b.Leave()
	c := s.Join("worker-2")
	read(t, c, histogramPage("0.05", "0.25", "2.5"))
	expect(t, s, "h_bucket{le=\"0.05\"} 20\nh_bucket{le=\"0.25\"} 60\nh_bucket{le=\"2.5\"} 120\nh_bucket{le=\"+Inf\"} 160\nh_sum 20\nh_count 160\n")
}

// Names in quotes, of other letters than names used to have, are shown with underscores,
// and what stands behind them counts.
func TestQuotedNames(t *testing.T) {
	s := NewStore(Options{})
	read(t, s.Join("w"), `# HELP "http.requests" All of them.
# TYPE "http.requests" counter
{"http.requests","http.route"="/a:b",code="200"} 5
{"http.requests"} 1
# TYPE "grüße" counter
# TYPE z_total counter
z_total{"a.b"="c","1d"="e"} 7 # {"net.http"="x"} 0.5
`)
	expect(t, s, `http_requests 1
http_requests{code="200",http_route="/a:b"} 5
z_total{_d="e",a_b="c"} 7
`)
	testkit.Says(t, shown(t, s), "# HELP http_requests All of them.\n# TYPE http_requests counter\n")
}
