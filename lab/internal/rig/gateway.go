package rig

import (
	"context"
	"strconv"

	"github.com/cabrank/cabrank/internal/testkit/ports"
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
