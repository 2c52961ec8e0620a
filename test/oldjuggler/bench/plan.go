package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// plan is what is measured.
type plan struct {
	cabrank, arms, parts     string
	callers, sockets, rounds int
	warmup, lasts            time.Duration
}

// costs are sums since the start: CPU by process, and commands of Redis.
type costs struct {
	server, callee, redis time.Duration
	commands              map[string]int
}

func (p plan) run(ctx context.Context) error {
	for part := range strings.SplitSeq(p.parts, ",") {
		measure := map[string]func(context.Context) error{"calls": p.calls, "events": p.events, "idle": p.idle}[part]
		if measure == nil {
			return fmt.Errorf("no part %q", part)
		}
		if err := measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", part, err)
		}
	}
	return nil
}

// each runs do with each arm, in rounds, one arm at a time.
func (p plan) each(ctx context.Context, arms string, do func(round int, a *arm) error) error {
	for round := range p.rounds {
		for name := range strings.SplitSeq(arms, ",") {
			a, err := p.start(ctx, name)
			if err == nil {
				err = do(round+1, a)
				a.stop()
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// calls has callers who wait for their answer.
func (p plan) calls(ctx context.Context) error {
	fmt.Printf("\ntest.echo, %d callers, %v a round; CPU in us a call\n\n", p.callers, p.lasts)
	fmt.Printf("| server | round | calls/s | p50 ms | p99 ms | server | callee | Redis | all | commands of Redis a call |\n")
	fmt.Printf("|---|---|---|---|---|---|---|---|---|---|\n")
	return p.each(ctx, p.arms, func(round int, a *arm) error { return p.callRound(ctx, round, a) })
}

func (p plan) callRound(ctx context.Context, round int, a *arm) error {
	load, err := openLoad(ctx, a, p.callers)
	if err != nil {
		return err
	}
	defer load.close()
	if _, err := load.run(ctx, p.warmup); err != nil {
		return err
	}
	before, err := a.measure()
	if err != nil {
		return err
	}
	began := time.Now()
	took, err := load.run(ctx, p.lasts)
	if err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	after, err := a.measure()
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
	fmt.Printf("| %s | %d | %.0f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %s |\n", a.name, round, float64(n)/seconds,
		took[n/2].Seconds()*1e3, took[n*99/100].Seconds()*1e3, s, c, r, s+c+r, perCall(before.commands, after.commands, n))
	return nil
}

// perCall lists commands that clients send, each with how often in a call.
func perCall(before, after map[string]int, calls int) string {
	var words []string
	for _, name := range []string{"evalsha", "brpop", "blmpop", "ping", "publish", "eval"} {
		if n := after[name] - before[name]; n > calls/100 {
			words = append(words, fmt.Sprintf("%.2f %s", float64(n)/float64(calls), name))
		}
	}
	return strings.Join(words, ", ")
}

func (a *arm) measure() (c costs, err error) {
	if c.server, err = cpuOf(a.server.Process.Pid); err != nil || a.store == nil {
		return c, err
	}
	if c.callee, err = cpuOf(a.callee.Process.Pid); err != nil {
		return c, err
	}
	conn, err := a.store.Dial()
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
