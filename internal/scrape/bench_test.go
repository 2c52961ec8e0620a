package scrape

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
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
// once. BenchmarkScrape has the HTTP in it.
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
			testkit.Must(b, p.ReadText(page))
		}
		families, _ := s.Gather()
		if len(families) != 3 {
			b.Fatal(families)
		}
	}
}

// BenchmarkScrape gets these pages over HTTP before. Its cpu-ms have the work of both
// sides, of the workers as little as goes. The bar is 150 ms.
func BenchmarkScrape(b *testing.B) {
	at := serveBytes(b, benchPage())
	s := NewStore(Options{})
	scraper := NewScraper(s, nil, nil, slog.New(slog.DiscardHandler))
	var all []*source
	for n := range 32 {
		all = append(all, scraper.source(Target{Worker: fmt.Sprintf("worker-%d", n), PID: n + 1, At: at}))
	}
	before := cpuTime(b)
	b.ReportAllocs()
	for b.Loop() {
		for _, from := range all {
			scraper.ask(b.Context(), from, mostWait)
		}
		families, _ := s.Gather()
		if len(families) != 3 {
			b.Fatal(families)
		}
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/1e6, "cpu-ms/op")
	counts := scraper.Counts()
	testkit.Need(b, counts["ok"] == uint64(b.N*len(all)), "%v", counts)
}

// serveBytes answers every request with a page, and no more than that.
func serveBytes(b *testing.B, page []byte) Address {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(b, err)
	b.Cleanup(func() { _ = listener.Close() })
	response := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(page), page)
	go func() { // ends with its listener
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				_, _ = conn.Write(response)
			}
			_ = conn.Close()
		}
	}()
	return Address{"tcp", listener.Addr().String(), "/metrics"}
}

// cpuTime is what the process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	testkit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
