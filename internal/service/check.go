package service

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/redislink"
	"github.com/cabrank/cabrank/internal/worker"
)

// Check refuses what Run would refuse of a configuration before it opens a port: an upstream
// that is its own port, an address of Redis, a certificate.
func Check(cfg *config.Config) error {
	if err := cfg.UpstreamItself(cfg.Listen.Addr(), localAddresses()); err != nil {
		return cli.UsageError(err)
	}
	if err := redisAddresses(cfg); err != nil {
		return cli.UsageError(err)
	}
	if err := certs.Check(securePort(cfg)); err != nil {
		return faulty(cfg, "tls", err)
	}
	if err := cfg.UpstreamTLS.Check(); err != nil {
		return faulty(cfg, "upstream_tls", err)
	}
	return nil
}

// redisAddresses refuses the addresses of Redis that cabrank run would refuse, where it
// uses them.
func redisAddresses(cfg *config.Config) error {
	if len(cfg.Socket.Paths) == 0 {
		return nil
	}
	var faults config.Faults
	for address := range strings.FieldsSeq(cfg.Socket.Redis) {
		if _, err := redislink.ClientOption(address); err != nil {
			faults = append(faults, cfg.FaultAt("socket.redis", strings.TrimPrefix(err.Error(), "redis: "), ""))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}

// databaseFile is where a Rails application says how many connections it has to its
// database, below the folder that workers start in.
const databaseFile = "config/database.yml"

// fixedPool is a line of it that says so by a number. What a program works out is as
// RAILS_MAX_THREADS tells it, as a rule.
const fixedPool = `^\s*pool:\s*(\d+)\s*(#.*)?$`

// Warnings returns lines about what Run takes and is most likely not meant: a pool of
// connections that has fewer than a worker has threads.
func Warnings(cfg *config.Config) (lines []string) {
	text, err := config.ReadFile(databaseFile)
	if err != nil || !cfg.RunsWorkers() {
		return nil
	}
	pools := regexp.MustCompile(fixedPool)
	threads := worker.ThreadsFor(cfg.Workers.Slots.N)
	for n, line := range strings.Split(string(text), "\n") {
		found := pools.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		if pool, err := strconv.Atoi(found[1]); err == nil && pool < threads {
			lines = append(lines, fmt.Sprintf("%s:%d: pool: %d is less than the %d threads of a worker, and calls may wait for a connection; allowed: %d or more, or <%%= ENV[\"RAILS_MAX_THREADS\"] %%>",
				databaseFile, n+1, pool, threads, threads))
		}
	}
	return lines
}
