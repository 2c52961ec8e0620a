//go:build real || soak

package attack_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	containerMemory = 100 << 20
	containerRaids  = 20 // attackers' connections at a time
	containerTime   = 4 * time.Second
)

// inContainer has cabrank and what it starts run in a control group of their own
// with so much memory. The kernel kills in it as it does in a container.
func inContainer(t *testing.T, limit int) (group string) {
	t.Helper()
	file, at := "memory.limit_in_bytes", "/sys/fs/cgroup/memory"
	if _, err := os.Stat(at); err != nil {
		file, at = "memory.max", "/sys/fs/cgroup"
	}
	group = filepath.Join(at, "cabrank-test-"+strconv.Itoa(os.Getpid())+"-"+strings.ReplaceAll(t.Name(), "/", "-"))
	if err := os.Mkdir(group, 0o755); err != nil {
		t.Skipf("no control group may be made: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(group) }) // what was in it has ended before
	if err := os.WriteFile(filepath.Join(group, file), []byte(strconv.Itoa(limit)), 0o600); err != nil {
		t.Skipf("the control group takes no limit: %v", err)
	}
	script := fmt.Sprintf("#!/bin/sh\necho $$ > %s/cgroup.procs && exec %s \"$@\"\n", group, harness.CabrankBinary(t))
	enter := harness.WriteFile(t, "cabrank", script)
	t.Setenv("CABRANK_BIN", enter)
	return group
}

// mostUsed returns the most memory that a group has used, MiB.
func mostUsed(t *testing.T, group string) int {
	t.Helper()
	for _, name := range []string{"memory.max_usage_in_bytes", "memory.peak"} {
		if text, err := os.ReadFile(filepath.Join(group, name)); err == nil {
			bytes, err := strconv.Atoi(strings.TrimSpace(string(text)))
			testkit.Must(t, err)
			return bytes >> 20
		}
	}
	return 0
}

// raids are attacks on memory: what one connection of an attacker sends.
func raids() map[string]func(a *harness.Arms) {
	return map[string]func(a *harness.Arms){
		"HEADERS alone":          func(a *harness.Arms) { a.WideCalls(false) },
		"HEADERS of whole calls": func(a *harness.Arms) { a.WideCalls(true) },
		"half header blocks": func(a *harness.Arms) {
			a.Do(a.WriteHeaders(http2.HeadersFrameParam{StreamID: a.Next, BlockFragment: make([]byte, 16<<10)}))
			for range 3 {
				a.Do(a.WriteContinuation(a.Next, false, make([]byte, 15<<10)))
			}
		},
		"uploads": func(a *harness.Arms) {
			part := make([]byte, 15<<10)
			copy(part, []byte{0, 0, 1, 0, 0}) // of a message of 64 KiB, too little to begin with
			for range 240 {
				id := a.Call(false)
				a.Do(a.WriteData(id, false, part))
				a.Do(a.WriteData(id, false, part))
			}
		},
	}
}

// In a container of 100 MiB cabrank outlives attacks on its memory, and a caller
// beside them has at least 99 of 100 calls answered.
func TestAttackedInAContainer(t *testing.T) {
	for name, raid := range raids() {
		t.Run(name, func(t *testing.T) { attackedInAContainer(t, raid) })
	}
}

func attackedInAContainer(t *testing.T, raid func(a *harness.Arms)) {
	t.Helper()
	group := inContainer(t, containerMemory)
	c := harness.StartCabrank(t, "--workers", "2", "--slots", "10", "--transport", "unix",
		"--", harness.CabrankBinary(t), "demo", "worker", "--work", "2ms")
	c.WaitReady(harness.Patience)
	good := demopb.NewGreeterClient(harness.Dial(t, c.Addr))
	inRhythm(t, good, goodPace, time.Second) // and so it is known that callers speak first
	ctx, stop := context.WithTimeout(t.Context(), containerTime)
	defer stop()
	var busy sync.WaitGroup
	var made atomic.Int64
	for range containerRaids {
		busy.Go(func() {
			for ctx.Err() == nil {
				made.Add(1)
				raidOnce(ctx, c.Addr, raid)
			}
		})
	}
	wantAnswered(t, good, containerTime)
	stop()
	busy.Wait()
	t.Logf("%d connections of attackers; at most %d MiB used", made.Load(), mostUsed(t, group))
	testkit.Need(t, !c.Exited(), "cabrank has ended: %v", c.Cmd.ProcessState)
}

// raidOnce attacks over one connection, for half a second.
func raidOnce(ctx context.Context, addr string, raid func(a *harness.Arms)) {
	// From another address: shares are theirs.
	dialer := net.Dialer{Timeout: time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	nc, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
		return
	}
	defer nc.Close()
	a := harness.NewArms()
	raid(a)
	_ = nc.SetDeadline(time.Now().Add(500 * time.Millisecond))
	if _, err := io.Copy(nc, bytes.NewReader(a.Out.Bytes())); err == nil {
		_, _ = io.Copy(io.Discard, nc)
	}
}

// inRhythm makes calls in a fixed rhythm, and returns how long those took that were answered,
// sorted, each from when it was due, and why others failed.
func inRhythm(t *testing.T, good demopb.GreeterClient, every, lasts time.Duration) (took []time.Duration, failed map[string]int) {
	t.Helper()
	var (
		mu    sync.Mutex // guards took and failed
		calls sync.WaitGroup
	)
	failed = map[string]int{}
	began := time.Now()
	for due := time.Duration(0); due < lasts; due += every {
		<-time.After(time.Until(began.Add(due)))
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_, err := good.SayHello(ctx, &demopb.HelloRequest{Name: "good"})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[err.Error()]++
				return
			}
			took = append(took, time.Since(began)-due)
		})
	}
	calls.Wait()
	slices.Sort(took)
	return took, failed
}

// wantAnswered calls for so long, and wants at least 99 of 100 calls to be answered.
func wantAnswered(t *testing.T, good demopb.GreeterClient, lasts time.Duration) {
	t.Helper()
	took, failed := inRhythm(t, good, goodPace, lasts)
	lost := 0
	for _, n := range failed {
		lost += n
	}
	t.Logf("%d calls answered; failed: %v", len(took), failed)
	testkit.Want(t, lost*99 <= len(took) && len(took) != 0, "%d of %d calls were not answered", lost, lost+len(took))
}

const goodPace = 10 * time.Millisecond
