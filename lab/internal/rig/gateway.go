package rig

import (
	"context"
	"os"
	"strconv"
	"time"

	"github.com/cabrank/cabrank/internal/testkit/certificate"
	"github.com/cabrank/cabrank/internal/testkit/ports"
	"github.com/cabrank/cabrank/lab/internal/proxies"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// startGateway starts the program that makes the calls for callers who speak HTTP to it, if
// there is one, behind the front. It runs where callers do: fronts and workers see it as
// their caller. Whether it works is for its callers to ask.
func (r *Rig) startGateway(ctx context.Context) error {
	g := r.spec.Gateway
	if len(g.Command) == 0 {
		return nil
	}
	port, err := ports.Free(1)
	if err != nil {
		return err
	}
	r.gatewayAt = place{"127.0.0.1", port}
	command, env := filled(g.Command, g.Env,
		"{target}", r.front.target(), "{addr}", r.gatewayAt.addr(), "{host}", r.gatewayAt.host, "{port}", strconv.Itoa(port))
	env = append(env, "PORT="+strconv.Itoa(port))
	r.gateway, err = r.process("gateway", "the gateway", "gateway", 0, testbed.Program{Command: command, Env: env, Dir: g.Dir})
	if err != nil {
		return err
	}
	return r.gateway.begin(ctx, byConnection, r.gatewayAt.addr())
}

// cert is the file with the certificate of an arm, and its key.
func (r *Rig) cert() string { return r.folder.file("cert.pem") }

func (r *Rig) makeCert() error {
	cert, key, err := certificate.Make("bench.example", time.Now().Add(24*time.Hour))
	if err != nil {
		return err
	}
	return os.WriteFile(r.cert(), append(cert, key...), 0o600)
}

// startTLS starts who ends TLS before the front.
func (r *Rig) startTLS(ctx context.Context) error {
	proxy, _ := proxies.Find(string(scenario.FrontHAProxyTCP))
	path, err := proxy.Look()
	if err != nil {
		return err
	}
	port, err := ports.Free(1)
	if err != nil {
		return err
	}
	r.tlsAt = place{"127.0.0.1", port}
	args, err := proxy.Write(r.folder.path, proxies.Config{
		Listen: r.tlsAt.addr(), Workers: []proxies.Worker{{Name: "front", Addr: r.front.target()}},
		Connections: max(0, r.files/2-spareFiles), Files: r.files, Cert: r.cert(),
	})
	if err != nil {
		return err
	}
	r.tls, err = r.process("front 2", "HAProxy before the front", "front-tls", 0,
		testbed.Program{Command: append([]string{path}, args...), Dir: r.folder.path, Cores: r.spec.Front.Cores})
	if err != nil {
		return err
	}
	return r.tls.begin(ctx, byConnection, r.tlsAt.addr())
}
