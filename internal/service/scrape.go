package service

import (
	"cmp"
	"context"
	"net"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/scrape"
	"github.com/cabrank/cabrank/internal/worker"
)

// scraping has the metrics pages of the workers merged.
type scraping struct {
	store   *scrape.Store
	scraper *scrape.Scraper
	path    string // of the pages
}

// makeScraping prepares it, where there are workers and a metrics page to show it on.
func (s *service) makeScraping() {
	if !s.cfg.Metrics.On || len(s.cfg.Command) == 0 {
		return
	}
	m := &scraping{path: s.cfg.Workers.MetricsPath}
	m.store = scrape.NewStore(scrape.Options{Rules: gaugeRules(s.cfg), PerWorker: s.cfg.Metrics.Gauges.PerWorker()})
	interval := func() time.Duration { return s.current().Metrics.Interval }
	m.scraper = scrape.NewScraper(m.store, func() []scrape.Target { return m.targets(s.workers.Workers()) }, interval, s.log)
	s.scrape = m
}

// sample is what the metrics page says of it.
func (m *scraping) sample() admin.ScrapeSample {
	return admin.ScrapeSample{Results: m.scraper.Counts(), Stats: m.store.Stats()}
}

// gaugeRules puts the policies in an order in which the more exact name comes first.
func gaugeRules(cfg *config.Config) (rules []scrape.Rule) {
	for pattern, policy := range cfg.Metrics.Gauges {
		rules = append(rules, scrape.Rule{Pattern: pattern, Policy: policy})
	}
	sort.Slice(rules, func(i, j int) bool {
		a, b := rules[i].Pattern, rules[j].Pattern
		return cmp.Or(cmp.Compare(strings.Count(a, "*"), strings.Count(b, "*")), -cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) < 0
	})
	return rules
}

// targets are the processes that may have a page: those that were ready. While one starts,
// who listens at its port may be another program, whose numbers would stay.
func (m *scraping) targets(workers []worker.Status) (all []scrape.Target) {
	for _, w := range workers {
		if w.PID != 0 && w.State != worker.Starting && w.State != worker.CrashLoop {
			all = append(all, m.target(w))
		}
	}
	return all
}

// target is the page of a process: at its socket if it has one there, else at its port.
func (m *scraping) target(w worker.Status) scrape.Target {
	at := scrape.Address{Network: "tcp", Address: net.JoinHostPort("127.0.0.1", strconv.Itoa(w.Page.Port)), Path: m.path}
	if w.Page.Socket != "" {
		if _, err := os.Stat(w.Page.Socket); err == nil {
			at.Network, at.Address = "unix", w.Page.Socket
		}
	}
	return scrape.Target{Worker: w.Name, PID: w.PID, Began: w.Started, At: at}
}

// last asks a process that is about to end.
func (m *scraping) last(ctx context.Context, w worker.Status) { m.scraper.Last(ctx, m.target(w)) }
