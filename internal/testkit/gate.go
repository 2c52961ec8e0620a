package testkit

import "sync"

// Gate is a reader of output that stalls until it is opened: a Write waits so long.
type Gate struct {
	Buffer

	once sync.Once
	open chan struct{}
}

// NewGate returns one that is shut.
func NewGate() *Gate { return &Gate{open: make(chan struct{})} }

// Open lets all writes through, from now on and for ever.
func (g *Gate) Open() { g.once.Do(func() { close(g.open) }) }

// Write adds to the text.
func (g *Gate) Write(p []byte) (int, error) {
	<-g.open
	return g.Buffer.Write(p)
}
