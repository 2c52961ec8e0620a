package scrape

import (
	"fmt"
	"strings"
	"testing"
)

// benchPage has 2,000 series, half of them of histograms, as a Rails service has them.
func benchPage() []byte {
	var b strings.Builder
	b.WriteString("# HELP calls_total Calls.\n# TYPE calls_total counter\n# HELP size A size.\n# TYPE size gauge\n# HELP duration How long.\n# TYPE duration histogram\n")
	for n := range 500 {
		fmt.Fprintf(&b, "calls_total{service=\"shop.Orders\",method=\"Get%d\",code=\"ok\"} %d\n", n, n)
		fmt.Fprintf(&b, "size{service=\"shop.Orders\",cache=\"c%d\"} %d.5\n", n, n)
	}
	for n := range 50 {
		labels := fmt.Sprintf("service=\"shop.Orders\",method=\"Get%d\"", n)
		for bound := range 17 {
			fmt.Fprintf(&b, "duration_bucket{%s,le=\"%g\"} %d\n", labels, 0.001*float64(int(1)<<bound), bound)
		}
		fmt.Fprintf(&b, "duration_bucket{%s,le=\"+Inf\"} 17\nduration_sum{%s} 3.25\nduration_count{%s} 17\n", labels, labels, labels)
	}
	return []byte(b.String())
}

// BenchmarkRound reads the pages of 32 workers, of 2,000 series each, and merges them
// once. The bar is 150 ms of CPU, the HTTP included (BenchmarkScrape).
func BenchmarkRound(b *testing.B) {
	page := benchPage()
	s := NewStore(Options{})
	var all []*Process
	for n := range 32 {
		all = append(all, s.Join(fmt.Sprintf("worker-%d", n)))
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, p := range all {
			if err := p.ReadText(page); err != nil {
				b.Fatal(err)
			}
		}
		if families, _ := s.Gather(); len(families) != 3 {
			b.Fatal(families)
		}
	}
}
