package redisd

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Proxy is a name for a Redis: new connections go to whoever has it then, and those that
// there are stay where they are.
//
// Concurrency: methods may be called from anywhere.
type Proxy struct {
	// Address is HOST:PORT.
	Address string

	serving sync.WaitGroup

	mu     sync.Mutex
	target string
	ends   []net.Conn
}

// StartProxy starts one for a test. The target is HOST:PORT.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	on := testkit.Listen(t)
	p := &Proxy{Address: on.Addr().String(), target: target}
	p.serving.Go(func() {
		for {
			client, err := on.Accept()
			if err != nil {
				return
			}
			p.serving.Go(func() { p.pass(client) })
		}
	})
	t.Cleanup(func() {
		on.Close()
		p.cut()
		p.serving.Wait()
	})
	return p
}

// MoveTo has new connections go elsewhere.
func (p *Proxy) MoveTo(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// cut ends all connections.
func (p *Proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, end := range p.ends {
		_ = end.Close() // most are closed already
	}
}

func (p *Proxy) pass(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return // the client sees its connection end
	}
	defer server.Close()
	p.mu.Lock()
	p.ends = append(p.ends, client, server)
	p.mu.Unlock()
	p.serving.Go(func() {
		defer server.Close()
		_, _ = io.Copy(server, client) // it ends with either end
	})
	_, _ = io.Copy(client, server)
}
