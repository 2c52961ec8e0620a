package relay

const (
	// connectionSize is what a caller's connection that is idle takes, at most,
	// bytes: its engine, its header table and what the kernel has of it.
	connectionSize = 16 << 10
	// However little memory there is, so much is served.
	leastBuffers     = 1 << 20
	leastConnections = 16
)

// SetMemory tells how many bytes callers may take: one half of them bounds the
// buffers, if it is less than Options.BufferTotal, the other the connections, if they
// are fewer than Limits.Connections. 0 means that the options alone do. What is in
// use beyond a new bound is given up as new work comes.
//
// Concurrency: may be called from anywhere.
func (r *Relay) SetMemory(bytes int64) {
	r.memory.Store(bytes)
	r.budget.SetTotal(r.bufferTotal())
}

// bufferTotal is how many bytes may be buffered.
func (r *Relay) bufferTotal() int64 {
	total := r.settings().BufferTotal
	if bytes := r.memory.Load(); bytes > 0 {
		total = min(total, max(bytes/2, leastBuffers))
	}
	return total
}

// mostConnections is how many callers' connections there may be.
func (r *Relay) mostConnections() int64 {
	most := int64(r.settings().Limits.Connections)
	if bytes := r.memory.Load(); bytes > 0 {
		most = min(most, max(bytes/2/connectionSize, leastConnections))
	}
	return most
}
