//go:build soak

package operations_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// nginxConf has nginx pass calls on to cabrank, with the address of who makes them.
const nginxConf = `daemon off;
pid %[1]s/nginx.pid;
error_log stderr;
events { worker_connections 64; }
http {
	access_log off;
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	server {
		listen %[2]s http2;
		location / {
			grpc_pass grpc://%[3]s;
			grpc_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
		}
	}
}
`

// Two callers behind one nginx are two where it is one of proxies, and one where it is not.
// Who says that he is another, and is no proxy, is who he is.
func TestCallersBehindNginx(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprintf("nginx is known %v", known), func(t *testing.T) {
			proxies := "[192.0.2.1]"
			if known {
				proxies = "[127.0.0.1]"
			}
			config := harness.WriteFile(t, "cabrank.yml", fmt.Sprintf("proxies: %s\nfair: {key: peer}\nlimits: {calls: 1}\n", proxies))
			c := harness.StartFault(t, harness.FaultWorker(t), "--workers", "1", "--slots", "8", "--drain-timeout", "1s", "--stop-timeout", "1s", "--config", config)
			nginx := startNginx(t, c.Addr)
			first, second := harness.DialFrom(t, "127.0.0.2", nginx), harness.DialFrom(t, "127.0.0.3", nginx)
			ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
			defer cancel()
			call, leave := context.WithCancel(ctx)
			long := harness.GoIo(call, first, "long", harness.Patience)
			c.WaitTaken(1)

			want := func(who string, conn *grpc.ClientConn, code codes.Code, forwarded ...string) {
				t.Helper()
				named := metadata.NewOutgoingContext(ctx, metadata.MD{"x-forwarded-for": forwarded})
				err := harness.CallIo(named, conn, "short", 0).Err
				testkit.Want(t, status.Code(err) == code, "%s: got %v, want %v", who, err, code)
			}
			want("the first caller again", first, codes.ResourceExhausted)
			if known {
				want("another one", second, codes.OK)
				want("another one, who names the first", second, codes.OK, "127.0.0.2")
			} else {
				want("another one, who seems to be the same", second, codes.ResourceExhausted)
			}
			want("one who is no proxy", harness.DialFrom(t, "127.0.0.4", c.Addr), codes.OK, "127.0.0.2")
			leave()
			<-long
		})
	}
}

// startNginx starts one before cabrank and returns where it listens.
func startNginx(t *testing.T, to string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil { // its workers are another user
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", testkit.FreePorts(t, 1))
	file := filepath.Join(dir, "nginx.conf")
	testkit.Must(t, os.WriteFile(file, fmt.Appendf(nil, nginxConf, dir, addr, to), 0o600))
	path, err := exec.LookPath("nginx")
	if err != nil {
		path = harness.Built(t, "/usr/sbin/nginx", "scripts/install-deps.sh workers")
	}
	p := harness.StartProcess(t, nil, path, "-p", dir, "-c", file)
	t.Cleanup(func() { // killed, it would leave its worker
		p.Signal(syscall.SIGTERM)
		p.ExitCode(harness.Patience)
	})
	p.Wait(harness.Patience, "nginx to listen", func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return addr
}
