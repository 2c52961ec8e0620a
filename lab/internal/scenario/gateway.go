package scenario

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/cabrank/cabrank/lab/internal/httpcaller"
)

// Gateway is a program that makes the gRPC calls for callers who speak HTTP to it. It is
// started behind the front, and ends with the block.
type Gateway struct {
	// Command runs, in Dir: words with {target} in them, which is what it has to call,
	// and {addr}, {host} and {port}, where it has to listen. PORT is in its environment.
	// It is empty if there is none.
	Command []string
	Dir     string
	// Env is added to the environment: NAME=value, with the same in it.
	Env []string
}

// HTTP is what callers ask a gateway for.
type HTTP struct {
	// Path is what is asked for, with its query: see package httpcaller. It is empty
	// if calls are gRPC.
	Path string
	// Ready is answered with 200 when the gateway can work.
	Ready string
}

// gateway reads the keys of a gateway.
func (t *table) gateway(node *yaml.Node, g *Gateway) {
	inner := t.table(node, t.at("gateway"))
	inner.command("command", &g.Command)
	inner.text("dir", &g.Dir)
	inner.environment("env", &g.Env)
	inner.close()
}

// http reads a path, or keys.
func (t *table) http(h *HTTP) {
	node := t.take("http")
	switch {
	case node == nil:
		return
	case node.Kind == yaml.ScalarNode:
		t.text("http", &h.Path)
		h.Ready = h.Path
	default:
		inner := t.table(node, "http")
		inner.text("path", &h.Path)
		h.Ready = h.Path
		inner.text("ready", &h.Ready)
		inner.close()
	}
	for _, path := range []string{h.Path, h.Ready} {
		if err := httpcaller.Check(path); err != nil {
			t.wrong("http", "%v", err)
		}
	}
	for _, key := range []string{"method", "data", "messages", "proto", "import_path", "metadata", "worker_key"} {
		if t.value[key] != nil {
			t.wrong(key, "is for gRPC, and http is given; leave one of them out")
		}
	}
}

// checkGateway holds an arm against what callers speak.
func (a *Arm) checkGateway(h HTTP) error {
	switch has := len(a.Gateway.Command) > 0; {
	case h.Path != "" && !has:
		return errors.New("callers speak HTTP: to whom? give gateway, with a command")
	case h.Path == "" && has:
		return fmt.Errorf("it has a gateway, and calls are gRPC; give http, such as /fibonacci?n=1")
	}
	return nil
}
