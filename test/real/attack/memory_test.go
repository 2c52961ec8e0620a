//go:build soak

package attack_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/cabrank/cabrank/test/real/harness"
)

// Bounds of memory, ten times what is aimed at (8 KiB for an idle connection,
// 6 MiB after load): the figures are printed, and bench/ is where they are
// compared.
const (
	idleConnections = 5000 // with cabrank's own ends within the usual limit on open files
	idleBound       = 80 << 10
	loadBoundKiB    = 60 << 10
)

// What cabrank with three workers keeps in memory at the start, after load, and
// for connections that have made a call and say nothing any more.
func TestMemory(t *testing.T) {
	c := harness.StartCabrank(t, "--workers", "3", "--slots", "10", "--transport", "unix", "--", harness.CabrankBinary(t), "demo", "worker")
	c.WaitReady(harness.Patience)
	start, startPSS := harness.RSSKiB(t, c.PID), pssKiB(t, c.PID)
	t.Logf("at the start: RSS %d KiB, PSS %d KiB", start, startPSS)

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	tally := &harness.SoakTally{Failures: make(map[string]int)}
	var running sync.WaitGroup
	for range 20 {
		running.Go(func() { harness.SoakCaller(ctx, t, c.Addr, tally) })
	}
	running.Wait()
	loaded, loadedPSS := harness.RSSKiB(t, c.PID), pssKiB(t, c.PID)
	t.Logf("after %d calls: RSS %d KiB, PSS %d KiB", len(tally.Took), loaded, loadedPSS)
	if loaded > start+loadBoundKiB || len(tally.Failures) > 0 {
		t.Errorf("memory grew from %d to %d KiB; calls failed: %v", start, loaded, tally.Failures)
	}

	conns := openIdle(t, c.Addr)
	// Nothing of them is under way any more when the one behind them is answered.
	each := (pssKiB(t, c.PID) - loadedPSS) * 1024 / len(conns)
	t.Logf("%d idle connections: %d bytes each by PSS", len(conns), each)
	if each > idleBound {
		t.Errorf("%d bytes for an idle connection", each)
	}
	c.Stop()
}

// openIdle opens connections that have made one call each.
func openIdle(t *testing.T, addr string) []net.Conn {
	t.Helper()
	ask, conns := healthQuestion(), make([]net.Conn, idleConnections)
	const atOnce = 8
	var opening sync.WaitGroup
	for first := range atOnce {
		opening.Go(func() {
			for i := first; i < len(conns); i += atOnce {
				var err error
				if conns[i], err = askOnce(addr, ask); err != nil {
					t.Errorf("connection %d: %v", i, err)
					return
				}
			}
		})
	}
	opening.Wait()
	t.Cleanup(func() {
		for _, conn := range conns {
			if conn != nil {
				conn.Close()
			}
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return conns
}

// healthQuestion is all that a caller sends that asks for the health once: it
// uses the dynamic table, as callers do.
func healthQuestion() []byte {
	var block, out bytes.Buffer
	encode := hpack.NewEncoder(&block)
	for _, f := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", "/grpc.health.v1.Health/Check"}, {":authority", "memory.test"},
		{"content-type", "application/grpc"}, {"te", "trailers"}, {"user-agent", "memory"},
	} {
		_ = encode.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}) // to memory
	}
	out.WriteString(http2.ClientPreface)
	f := http2.NewFramer(&out, nil)
	_ = errors.Join(f.WriteSettings(), f.WriteSettingsAck(),
		f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}),
		f.WriteData(1, true, make([]byte, 5)))
	return out.Bytes()
}

// askOnce makes a connection that has asked and was answered.
func askOnce(addr string, ask []byte) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, harness.Patience)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(harness.Patience)); err != nil {
		return conn, err
	}
	if _, err := conn.Write(ask); err != nil {
		return conn, err
	}
	frames := http2.NewFramer(io.Discard, conn)
	for {
		f, err := frames.ReadFrame()
		if err != nil {
			return conn, fmt.Errorf("no answer: %w", err)
		}
		if h, ok := f.(*http2.HeadersFrame); ok && h.StreamEnded() {
			return conn, nil
		}
	}
}

// pssKiB returns the memory of a process, with pages that are shared counted in
// proportion.
func pssKiB(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/smaps_rollup")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if value, found := strings.CutPrefix(line, "Pss:"); found {
			kib, err := strconv.Atoi(strings.Fields(value)[0])
			if err != nil {
				t.Fatal(err)
			}
			return kib
		}
	}
	t.Fatal("no Pss")
	return 0
}
