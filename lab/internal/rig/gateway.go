package rig

import (
	"context"
	"strconv"

	"github.com/cabrank/cabrank/internal/testkit/ports"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// Gateway is a program that makes the calls for callers who speak HTTP to it. It runs
// where callers do, and is theirs: fronts and workers see it as their caller.
type Gateway struct {
	// Command is started in Dir, with Env, NAME=VALUE, beside the environment of this
	// process. In both {target} is what it has to call, {addr}, {host} and {port} where
	// it has to listen; PORT is in its environment, too. Without a command there is none.
	Command, Env []string
	Dir          string
}

// Gateway is where callers who speak HTTP find the gateway, host:port. It is empty if
// there is none.
func (r *Rig) Gateway() string {
	if r.gateway == nil {
		return ""
	}
	return r.gatewayAt.addr()
}

// startGateway starts it behind the front. Whether it works is for its callers to ask.
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
	command, env := g.told(r.Target(), r.gatewayAt)
	r.gateway, err = r.process("gateway", "the gateway", "gateway", 0, testbed.Program{Command: command, Env: env, Dir: g.Dir})
	if err != nil {
		return err
	}
	return r.gateway.begin(ctx, byConnection, r.gatewayAt.addr())
}

// told is the gateway with what is replaced in its command and environment.
func (g Gateway) told(target string, at place) (command, env []string) {
	command, env = filled(g.Command, g.Env,
		"{target}", target, "{addr}", at.addr(), "{host}", at.host, "{port}", strconv.Itoa(at.port))
	return command, append(env, "PORT="+strconv.Itoa(at.port))
}
