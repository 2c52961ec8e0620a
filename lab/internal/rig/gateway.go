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

// aside starts a process that is neither worker nor front, at a port of its own.
func (r *Rig) aside(ctx context.Context, at *place, role, name, group string, made func() (testbed.Program, error)) error {
	port, err := ports.Free(1)
	if err != nil {
		return err
	}
	*at = place{"127.0.0.1", port}
	program, err := made()
	if err != nil {
		return err
	}
	p, err := r.process(role, name, group, 0, program)
	if err != nil {
		return err
	}
	r.others = append(r.others, p)
	return p.begin(ctx, byConnection, at.addr())
}

// startGateway starts the program that makes the calls for callers who speak HTTP to it, if
// there is one, behind the front. It runs where callers do: fronts and workers see it as
// their caller. Whether it works is for its callers to ask.
func (r *Rig) startGateway(ctx context.Context) error {
	g := r.spec.Gateway
	if len(g.Command) == 0 {
		return nil
	}
	return r.aside(ctx, &r.gatewayAt, "gateway", "the gateway", "gateway", func() (testbed.Program, error) {
		at := r.gatewayAt
		command, env := filled(g.Command, g.Env, "{target}", r.front.target(), "{addr}", at.addr(), "{host}", at.host, "{port}", strconv.Itoa(at.port))
		return testbed.Program{Command: command, Env: append(env, "PORT="+strconv.Itoa(at.port)), Dir: g.Dir}, nil
	})
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
	return r.aside(ctx, &r.tlsAt, "front 2", "HAProxy before the front", "front-tls", func() (p testbed.Program, err error) {
		proxy, _ := proxies.Find(string(scenario.FrontHAProxyTCP))
		path, err := proxy.Look()
		if err != nil {
			return p, err
		}
		args, err := proxy.Write(r.folder.path, proxies.Config{
			Listen: r.tlsAt.addr(), Workers: []proxies.Worker{{Name: "front", Addr: r.front.target()}},
			Connections: max(0, r.files/2-spareFiles), Files: r.files, Cert: r.cert(),
		})
		return testbed.Program{Command: append([]string{path}, args...), Dir: r.folder.path, Cores: r.spec.Front.Cores}, err
	})
}
