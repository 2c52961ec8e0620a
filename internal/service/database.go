package service

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/worker"
)

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
