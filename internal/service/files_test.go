package service

import (
	"io/fs"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/worker"
)

// As many connections are taken as fit beside the files that serve them, and
// the operator is told when that is less than was asked for.
func TestOpenable(t *testing.T) {
	for _, test := range []struct {
		wanted, workers, shards int
		files                   uint64
		taken                   int
		told                    string // part of the line, empty: none
	}{
		{20_000, 4, 2, 0, 20_000, ""},
		{20_000, 4, 2, math.MaxUint64, 20_000, ""},
		{20_000, 4, 2, 20_096, 20_000, ""},
		{20_000, 4, 2, 20_000, 19_904, ""},
		{20_000, 4, 2, 1024, 928, "few connections can be taken"},
		{20_000, 1000, 64, 1024, leastConnections, "few connections can be taken"},
		{5, 4, 2, 50, 5, ""},
	} {
		var log strings.Builder
		cfg := &config.Config{Shards: test.shards, Command: []string{"worker"}}
		cfg.Limits.Connections, cfg.Workers.Count.N = test.wanted, test.workers
		testkit.Equal(t, openable(cfg, test.files, slog.New(slog.NewTextHandler(&log, nil))), test.taken, "%+v", test)
		testkit.Want(t, (log.Len() > 0) == (test.told != "") && strings.Contains(log.String(), test.told),
			"%+v: log %q", test, log.String())
	}
	var log strings.Builder
	cfg, err := config.Load(config.Sources{CPUs: 1, Environ: []string{"CABRANK_LIMITS_CONNECTIONS=20000"}, ReadFile: noFile})
	testkit.Must(t, err)
	openable(cfg, 20_000, slog.New(slog.NewTextHandler(&log, nil)))
	testkit.Says(t, log.String(), "fewer connections than configured")
}

func noFile(string) ([]byte, error) { return nil, fs.ErrNotExist }

// A few descriptors are for others than callers, however few there are.
func TestLastOfCallers(t *testing.T) {
	for files, want := range map[uint64]int{0: 0, 10: 1, 64: 44, 20_000: 19_980, math.MaxUint64: 0} {
		testkit.Equal(t, lastOfCallers(files), want, "%d files", files)
	}
}

// All endpoints count that there may be at a time: workers, those of a roll, and
// what names may stand for.
func TestMostEndpoints(t *testing.T) {
	command := []string{"worker"}
	for _, test := range []struct {
		cfg  config.Config
		want int
	}{
		{config.Config{Command: command, Workers: worker.Settings{Count: worker.Amount{N: 4}, MaxSurge: 1}}, 5},
		{config.Config{Command: command, Workers: worker.Settings{Count: worker.Amount{N: 4, Min: 1, Max: 16}, MaxSurge: 1}}, 17},
		{config.Config{Upstreams: []string{"a:1", "b:1"}, Workers: worker.Settings{Count: worker.Amount{N: 4}}}, 2},
		{config.Config{Upstreams: []string{"a:1", "dns:b:1", "srv:c"}, Command: command, Workers: worker.Settings{Count: worker.Amount{N: 4}}}, 5 + 2*endpointsOfName},
	} {
		testkit.Equal(t, mostEndpoints(&test.cfg), test.want, "%+v", test.cfg)
	}
}
