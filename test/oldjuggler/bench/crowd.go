package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

const (
	// eventBytes is the text of an event, pacedEvents and burstEvents how many there are.
	eventBytes               = 100
	pacedEvents, burstEvents = 40, 100
	pace                     = 50 * time.Millisecond
)

// crowd is sockets that have subscribed to a channel and count what comes.
type crowd struct {
	speech  speech
	sockets []*websocket.Conn
	got     atomic.Int64
	astray  atomic.Int64 // came before one that was published earlier
	ended   sync.WaitGroup
}

func gather(ctx context.Context, a *arm, n int) (*crowd, error) {
	c := &crowd{speech: speechOf(a.name)}
	for range n {
		ws, err := c.speech.dial(ctx, a.url, 512)
		if err != nil {
			c.leave()
			return nil, err
		}
		c.sockets = append(c.sockets, ws)
	}
	return c, nil
}

// join subscribes all, and counts from then on.
func (c *crowd) join() error {
	for _, ws := range c.sockets {
		if err := ws.WriteMessage(c.speech.kind, c.speech.subscribe); err != nil {
			return err
		}
		if _, _, err := ws.ReadMessage(); err != nil {
			return err
		}
	}
	for _, ws := range c.sockets {
		c.ended.Go(func() { c.count(ws) })
	}
	return nil
}

func (c *crowd) count(ws *websocket.Conn) {
	last := 0
	for {
		_, message, err := ws.ReadMessage()
		if err != nil {
			return
		}
		// The place of an event is at the beginning of its text.
		if _, text, ok := bytes.Cut(message, c.speech.mark); ok && len(text) > 6 {
			if number, err := strconv.Atoi(string(text[:6])); err == nil {
				if number < last {
					c.astray.Add(1)
				}
				last = max(last, number)
			}
		}
		c.got.Add(1)
	}
}

func (c *crowd) leave() {
	for _, ws := range c.sockets {
		ws.Close()
	}
	c.ended.Wait()
}

// await waits until so many events have come.
func (c *crowd) await(ctx context.Context, n int64) error {
	for deadline := time.Now().Add(time.Minute); c.got.Load() < n; time.Sleep(time.Millisecond) {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("%d of %d events have come", c.got.Load(), n)
		}
	}
	return nil
}

// events has one publisher and many who have subscribed.
func (p plan) events(ctx context.Context) error {
	fmt.Printf("\n1 publisher, %d sockets, events of %d bytes: %d of them %v apart, then %d at once\n\n", p.sockets, eventBytes, pacedEvents, pace, burstEvents)
	fmt.Printf("| server | round | paced: CPU of server, us a delivery | of Redis | at once: CPU of server | of Redis | deliveries/s | out of order |\n")
	fmt.Printf("|---|---|---|---|---|---|---|---|\n")
	return p.each(ctx, "bare,"+p.arms, func(round int, a *arm) error { return p.eventRound(ctx, round, a) })
}

func (p plan) eventRound(ctx context.Context, round int, a *arm) error {
	c, err := gather(ctx, a, p.sockets)
	if err != nil {
		return err
	}
	defer c.leave()
	if err := c.join(); err != nil {
		return err
	}
	publisher, err := gather(ctx, a, 1)
	if err != nil {
		return err
	}
	defer publisher.leave()
	before, err := a.measure()
	if err != nil {
		return err
	}
	if err := p.publish(ctx, publisher, c, 0, pacedEvents, pace); err != nil {
		return err
	}
	between, err := a.measure()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := p.publish(ctx, publisher, c, pacedEvents, burstEvents, 0); err != nil {
		return err
	}
	seconds := time.Since(began).Seconds()
	after, err := a.measure()
	if err != nil {
		return err
	}
	us := func(d time.Duration, events int) float64 {
		return float64(d.Nanoseconds()) / 1e3 / float64(events*p.sockets)
	}
	fmt.Printf("| %s | %d | %.2f | %.2f | %.2f | %.2f | %.0f | %d |\n", a.name, round,
		us(between.server-before.server, pacedEvents), us(between.redis-before.redis, pacedEvents),
		us(after.server-between.server, burstEvents), us(after.redis-between.redis, burstEvents),
		float64(burstEvents*p.sockets)/seconds, c.astray.Load())
	return nil
}

// publish sends events from a place on, and waits until all have come.
func (p plan) publish(ctx context.Context, publisher, to *crowd, from, n int, pause time.Duration) error {
	ws := publisher.sockets[0]
	acks := make(chan error, 1)
	go func() { // ends when all are acknowledged, or with the socket
		for range n {
			if _, _, err := ws.ReadMessage(); err != nil {
				acks <- err
				return
			}
		}
		acks <- nil
	}()
	for i := range n {
		text := fmt.Sprintf("%06d%s", from+i, strings.Repeat("x", eventBytes-6))
		if err := ws.WriteMessage(publisher.speech.kind, publisher.speech.publish(text)); err != nil {
			return err
		}
		time.Sleep(pause)
	}
	if err := <-acks; err != nil {
		return err
	}
	return to.await(ctx, int64((from+n)*p.sockets))
}

// idle has sockets that do nothing, and then subscribe; and ten times as many, for which
// the old server has not enough open files.
func (p plan) idle(ctx context.Context) error {
	fmt.Printf("\nsockets that do nothing; memory of the server\n\n")
	fmt.Printf("| server | round | sockets | KiB a socket | with a subscription | open files a socket |\n|---|---|---|---|---|---|\n")
	err := p.each(ctx, p.arms, func(round int, a *arm) error { return idleRound(ctx, round, a, p.sockets) })
	names := slices.DeleteFunc(strings.Split(p.arms, ","), func(name string) bool { return name == "old" })
	if err != nil || len(names) == 0 {
		return err
	}
	return p.each(ctx, strings.Join(names, ","), func(round int, a *arm) error { return idleRound(ctx, round, a, 10*p.sockets) })
}

func idleRound(ctx context.Context, round int, a *arm, n int) error {
	pid := a.server.Process.Pid
	few, err := gather(ctx, a, 10) // what is there for the first ones is no part
	if err != nil {
		return err
	}
	defer few.leave()
	before, files := rss(pid), openFiles(pid)
	c, err := gather(ctx, a, n)
	if err != nil {
		return err
	}
	defer c.leave()
	plain, more := rss(pid), openFiles(pid)
	if err := c.join(); err != nil {
		return err
	}
	joined := rss(pid)
	if before == 0 || joined == 0 {
		return errors.New("no memory of the server in /proc")
	}
	each := func(sum int) float64 { return float64(sum) / float64(n) }
	fmt.Printf("| %s | %d | %d | %.1f | %.1f | %.1f |\n", a.name, round, n, each(plain-before), each(joined-before), each(more-files))
	return nil
}

// rss is the memory of a process in KiB, the least of a few looks half a second after
// what has happened.
func rss(pid int) int {
	var seen []int
	for range 5 {
		time.Sleep(100 * time.Millisecond)
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if m := regexp.MustCompile(`VmRSS:\s+(\d+)`).FindSubmatch(text); m != nil {
			n, _ := strconv.Atoi(string(m[1]))
			seen = append(seen, n)
		}
	}
	if len(seen) == 0 {
		return 0
	}
	return slices.Min(seen)
}

func openFiles(pid int) int {
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	return len(entries)
}
