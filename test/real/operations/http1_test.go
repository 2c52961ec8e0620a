//go:build (real || soak) && linux

package operations_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// Who opens the port of the calls with a browser or with curl is told what it speaks
// and how it is called; what is written there is right. All else is told that it is
// the wrong protocol.
func TestPageByCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("there is no curl here")
	}
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1").Booted(1)
	ask := func(args ...string) string {
		t.Helper()
		p := harness.StartLine(t, slices.Concat([]string{curl, "-sS", "--max-time", "10"}, args)...)
		p.WantExit(harness.Patience, 0)
		return p.Output()
	}
	page := ask("http://" + c.Addr + "/")
	line := "grpcurl -plaintext " + c.Addr + " list"
	testkit.Want(t, strings.Contains(page, line), "no %q in %q", line, page)
	for _, want := range []struct {
		args []string
		text string
	}{
		{[]string{"-I", "http://" + c.Addr + "/"}, "HTTP/1.1 200 OK"},
		{[]string{"-i", "--http2-prior-knowledge", "http://" + c.Addr + "/?from=curl"}, "grpcurl -plaintext " + c.Addr + " list"},
		{[]string{"-I", "--http2-prior-knowledge", "http://" + c.Addr + "/"}, "HTTP/2 200"},
		{[]string{"--http2", "http://" + c.Addr + "/"}, "grpcurl"}, // asks for an upgrade
		{[]string{"-i", "-d", "{}", "http://" + c.Addr + "/work.Work/Io"}, "HTTP/1.1 415"},
		{[]string{"-i", "--http2-prior-knowledge", "-d", "{}", "http://" + c.Addr + "/work.Work/Io"}, "HTTP/2 415"},
		{[]string{"-d", "{}", "http://" + c.Addr + "/work.Work/Io"}, "the content type is not one of gRPC"},
		{[]string{"-i", "http://" + c.Addr + "/favicon.ico"}, "HTTP/1.1 404"},
	} {
		got := ask(want.args...)
		testkit.Want(t, strings.Contains(got, want.text), "curl %v: no %q in %q", want.args, want.text, got)
	}
	testkit.Equal(t, c.Metric("cabrank_calls_total"), 0, "calls that they became")
}

// page asks for the page over the connection that is there, or a new one.
func page(ctx context.Context, client *http.Client, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, harness.Patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", http.NoBody)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the page: %s, %w", answer.Status, err)
	}
	return nil
}

// R20: through upgrades callers over HTTP/1 that never pause see no failure.
func TestUpgradeBesideHTTP1(t *testing.T) {
	m := harness.StartManaged(t, nil, nil, slices.Concat([]string{"--transport", "unix", "--workers", "1", "--"}, harness.FaultWorker(t))...)
	m.WaitWorkers(1)
	client := http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 6}}
	defer client.CloseIdleConnections()
	callers := harness.StartLoop(t, 6, func(ctx context.Context) error { return page(ctx, &client, m.Addr) })
	for range 2 {
		callers.WaitMore(20)
		m.Upgrade()
		callers.WaitMore(20)
	}
	callers.WantNoFailure()
	m.End()
}

// R17: a stop does not wait for a connection over HTTP/1 whose request does not come.
func TestStopBesideHTTP1(t *testing.T) {
	c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--drain-timeout", "10m").Booted(1)
	half, err := net.Dial("tcp", c.Addr)
	testkit.Must(t, err)
	defer half.Close()
	_, err = io.WriteString(half, "GET / HTTP/1.1\r\nHost")
	testkit.Must(t, err)
	c.WaitMetric("cabrank_connections", 1)
	c.StopWithin(harness.Patience)
	testkit.Must(t, half.SetReadDeadline(time.Now().Add(harness.Patience)))
	_, err = io.Copy(io.Discard, half)
	testkit.Want(t, !errors.Is(err, os.ErrDeadlineExceeded), "the connection is still open")
}
