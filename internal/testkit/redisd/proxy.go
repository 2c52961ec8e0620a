package redisd

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
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
	lose   string
	ends   []net.Conn
}

// StartProxy starts one for a test. The target is HOST:PORT, or the path of a socket.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
		p.Cut()
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

// Lose has the next answer that contains a text be lost, with its connection.
func (p *Proxy) Lose(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lose = text
}

// Cut ends all connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, end := range p.ends {
		_ = end.Close() // most are closed already
	}
	p.ends = nil
}

func (p *Proxy) pass(client net.Conn) {
	defer client.Close()
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	network := "tcp"
	if strings.HasPrefix(target, "/") {
		network = "unix"
	}
	server, err := net.Dial(network, target)
	if err != nil {
		return // the client sees its connection end
	}
	p.mu.Lock()
	p.ends = append(p.ends, client, server)
	p.mu.Unlock()
	p.serving.Go(func() {
		defer server.Close()
		_, _ = io.Copy(server, client) // it ends with either end
	})
	defer server.Close()
	for buffer := make([]byte, 1<<16); ; {
		n, err := server.Read(buffer)
		if err != nil || p.loses(buffer[:n]) {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (p *Proxy) loses(answer []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	lost := p.lose != "" && strings.Contains(string(answer), p.lose)
	if lost {
		p.lose = ""
	}
	return lost
}
