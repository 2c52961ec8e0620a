package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/internal/testkit/redisd"
)

// plan is what is measured.
type plan struct {
	callers, rounds int
	warmup, lasts   time.Duration
}

// costs are sums since the start: CPU by process, and commands of Redis.
type costs struct {
	server, callee, redis time.Duration
	commands              map[string]int
}

func (p plan) run(ctx context.Context) error {
	store, err := redisd.Launch()
	if err != nil {
		return err
	}
	defer store.Stop()
	ctx, cancel := context.WithCancel(ctx)
	callee, _, err := child(ctx, "callee", store)
	if err != nil {
		cancel()
		return err
	}
	server, url, err := child(ctx, "server", store)
	if err != nil {
		cancel()
		return errors.Join(err, callee.Wait())
	}
	defer func() {
		cancel()
		_, _ = callee.Wait(), server.Wait() // killed
	}()
	fmt.Printf("test.echo, %d callers, %v a round; CPU in us a call\n\n", p.callers, p.lasts)
	fmt.Printf("| round | calls/s | p50 ms | p99 ms | server | callee | Redis | all | commands of Redis a call |\n")
	fmt.Printf("|---|---|---|---|---|---|---|---|---|\n")
	load, err := openLoad(ctx, url, p.callers)
	if err != nil {
		return err
	}
	defer load.close()
	for round := range p.rounds {
		if err := p.round(ctx, round+1, load, store, server, callee); err != nil {
			return err
		}
	}
	return nil
}

func (p plan) round(ctx context.Context, number int, load *load, store *redisd.Server, server, callee *exec.Cmd) error {
	if _, err := load.run(ctx, p.warmup); err != nil {
		return err
	}
	before, err := measure(store, server, callee)
	if err != nil {
		return err
	}
	began := time.Now()
	took, err := load.run(ctx, p.lasts)
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	after, err := measure(store, server, callee)
	if err != nil {
		return err
	}
	slices.Sort(took)
	n := len(took)
	if n == 0 {
		return errors.New("nothing was answered")
	}
	each := func(d time.Duration) float64 { return float64(d.Microseconds()) / float64(n) }
	s, c, r := each(after.server-before.server), each(after.callee-before.callee), each(after.redis-before.redis)
	fmt.Printf("| %d | %.0f | %.1f | %.1f | %.0f | %.0f | %.0f | %.0f | %s |\n", number, float64(n)/seconds,
		took[n/2].Seconds()*1e3, took[n*99/100].Seconds()*1e3, s, c, r, s+c+r, perCall(before.commands, after.commands, n))
	return nil
}

// perCall lists commands that clients send, each with how often in a call.
func perCall(before, after map[string]int, calls int) string {
	var words []string
	for _, name := range []string{"evalsha", "brpop", "blmpop", "ping", "publish"} {
		if n := after[name] - before[name]; n > calls/100 {
			words = append(words, fmt.Sprintf("%.1f %s", float64(n)/float64(calls), name))
		}
	}
	return strings.Join(words, ", ")
}

func measure(store *redisd.Server, server, callee *exec.Cmd) (c costs, err error) {
	if c.server, err = cpuOf(server.Process.Pid); err != nil {
		return c, err
	}
	if c.callee, err = cpuOf(callee.Process.Pid); err != nil {
		return c, err
	}
	conn, err := store.Dial()
	if err != nil {
		return c, err
	}
	defer conn.Close()
	usage, err := redis.String(conn.Do("INFO", "cpu"))
	if err != nil {
		return c, err
	}
	stats, err := redis.String(conn.Do("INFO", "commandstats"))
	if err != nil {
		return c, err
	}
	c.commands = map[string]int{}
	for line := range strings.Lines(usage + "\n" + stats) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_sys" || name == "used_cpu_user" {
			seconds, _ := strconv.ParseFloat(value, 64)
			c.redis += time.Duration(seconds * 1e9)
		}
		if command, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			count, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			c.commands[command], _ = strconv.Atoi(count)
		}
	}
	return c, nil
}

// cpuOf is what a process has used, in steps of 10 ms. Source: proc(5), stat.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), ") ") // the name may have blanks
	fields := strings.Fields(after)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond, nil
}
