//go:build soak

package attack_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"google.golang.org/grpc"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	slowHandshakes = 32 // of each attacker
	slowPause      = time.Second
	freshCalls     = 10 // each call of so many is over a connection of its own
)

// handshakes are attacks on a port with TLS.
func handshakes() []siege {
	hello := clientHello()
	return []siege{
		{name: "slow handshakes", reason: "tls", instead: func(ctx context.Context, addr string) int {
			return crowd(slowHandshakes, func() int { return sayPart(ctx, addr, hello, slowPause) })
		}},
		{name: "half a ClientHello", reason: "tls", instead: func(ctx context.Context, addr string) int {
			return crowd(mutes, func() int { return sayPart(ctx, addr, hello[:len(hello)/2], 0) })
		}},
		{name: "200 handshakes a second", instead: paced(func(ctx context.Context, addr string) {
			handshake(ctx, addr, &tls.Config{InsecureSkipVerify: true})
		})},
		{name: "names without a certificate", reason: "tls", instead: paced(func(ctx context.Context, addr string) {
			handshake(ctx, addr, &tls.Config{ServerName: "nobody.test", MinVersion: tls.VersionTLS12})
		})},
		{name: "garbage in a record", reason: "tls", instead: paced(func(_ context.Context, addr string) {
			nc, err := net.Dial("tcp", addr)
			if err != nil {
				return
			}
			defer nc.Close()
			_, _ = nc.Write(append([]byte{0x16}, bytes.Repeat([]byte{0xa5, 0x03, 0x7f}, 1000)...))
			_ = nc.SetReadDeadline(time.Now().Add(floodBound))
			_, _ = nc.Read(make([]byte, 100)) // an alert, or the end
		})},
		{name: "renegotiation", instead: renegotiate},
	}
}

// clientHello is how a caller begins.
func clientHello() []byte {
	ours, theirs := net.Pipe()
	defer theirs.Close()
	go tls.Client(ours, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}).Handshake() // ends with the pipe
	first := make([]byte, 4096)
	n, _ := theirs.Read(first) // one record, one write
	return first[:n]
}

// crowd has so many do something at the same time, and adds up.
func crowd(many int, do func() int) int {
	var busy sync.WaitGroup
	var sum atomic.Int64
	for range many {
		busy.Go(func() { sum.Add(int64(do())) })
	}
	busy.Wait()
	return int(sum.Load())
}

// sayPart says bytes one after the other, or all at once, and nothing more until ctx ends;
// where cabrank hangs up it does so again.
func sayPart(ctx context.Context, addr string, text []byte, pause time.Duration) (conns int) {
	for ; ctx.Err() == nil; conns++ {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			continue
		}
		leave := context.AfterFunc(ctx, func() { nc.Close() })
		if pause == 0 {
			_, _ = nc.Write(text)
		} else {
			go func() { // ends with the connection
				for i := range text {
					if _, err := nc.Write(text[i : i+1]); err != nil {
						return
					}
					<-time.After(pause)
				}
			}()
		}
		_, _ = nc.Read(make([]byte, 100))
		leave()
		nc.Close()
	}
	return conns
}

// paced does something each stepPause, whether or not it has ended before.
func paced(do func(ctx context.Context, addr string)) func(ctx context.Context, addr string) int {
	return func(ctx context.Context, addr string) (times int) {
		pace := time.NewTicker(stepPause)
		defer pace.Stop()
		var busy sync.WaitGroup
		defer busy.Wait()
		for ; ; times++ {
			select {
			case <-ctx.Done():
				return times
			case <-pace.C:
				busy.Go(func() { do(ctx, addr) })
			}
		}
	}
}

// handshake shakes hands and leaves.
func handshake(ctx context.Context, addr string, config *tls.Config) {
	nc, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", addr)
	if err == nil {
		nc.Close()
	}
}

// renegotiate has Node, whose TLS can, ask for another handshake as soon as it has had one.
func renegotiate(ctx context.Context, addr string) int {
	host, port, _ := net.SplitHostPort(addr)
	cmd := exec.CommandContext(ctx, "node", "-e", `
		const [host, port] = process.argv.slice(1);
		let times = 0;
		process.on('SIGINT', () => { console.log(times); process.exit(0); });
		const once = () => {
			const s = require('tls').connect({host, port, rejectUnauthorized: false, maxVersion: 'TLSv1.2', ALPNProtocols: ['h2']}, () => {
				times++;
				s.renegotiate({rejectUnauthorized: false}, () => {});
			});
			s.on('error', () => {});
			s.on('close', () => setTimeout(once, 10));
		};
		once();`, host, port)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = floodBound
	out, _ := cmd.Output() // that ctx has ended is no error
	times, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	return times
}

// freshly is a connection beside which some calls have one of their own.
type freshly struct {
	*grpc.ClientConn
	dial  func() *grpc.ClientConn
	calls atomic.Int64
}

func (f *freshly) Invoke(ctx context.Context, method string, args, reply any, options ...grpc.CallOption) error {
	conn := f.ClientConn
	if f.calls.Add(1)%freshCalls == 0 {
		conn = f.dial()
		defer conn.Close()
	}
	return conn.Invoke(ctx, method, args, reply, options...)
}

// What others do with handshakes slows down neither the calls of a caller over TLS nor its
// new connections: the bars of TestAttacksUnderLoad.
func TestHandshakesUnderLoad(t *testing.T) {
	config, _, trust := harness.WithTLS(t, "")
	c := harness.StartCabrank(t, "--config", config, "--workers", "2", "--slots", "20", "--transport", "unix",
		"--", harness.CabrankBinary(t), "demo", "worker", "--work", "5ms")
	c.WaitReady(harness.Patience)
	dial := func() *grpc.ClientConn { return harness.DialTLS(t, c.Addr, trust) }
	good := demopb.NewGreeterClient(&freshly{ClientConn: dial(), dial: dial})
	callInTime(t, good) // warm

	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(rows, siegeHead)
	for _, s := range handshakes() {
		t.Run(s.name, func(t *testing.T) { s.run(t, c, good, rows) })
	}
	rows.Flush()
	t.Logf("\n%s", table.String())
}
