package relay

const (
	// connectionSize is the most memory of an idle caller's connection, bytes: engine,
	// header table and the kernel's part.
	connectionSize = 16 << 10
	// The bounds never go below these, however little memory the container has.
	leastBuffers     = 1 << 20
	leastConnections = 16
)

// SetMemory sets how many bytes callers may take. One half bounds the buffers, if it is less
// than Options.BufferTotal; the other half bounds the connections, if that makes fewer than
// Limits.Connections. 0 leaves the options alone. Use above a new bound is given up as new
// work comes.
//
// Concurrency: may be called from anywhere.
func (r *Relay) SetMemory(bytes int64) {
	r.memory.Store(bytes)
	r.budget.SetTotal(r.bufferTotal())
}

// bufferTotal returns how many bytes may be buffered.
func (r *Relay) bufferTotal() int64 {
	total := r.settings().BufferTotal
	if bytes := r.memory.Load(); bytes > 0 {
		total = min(total, max(bytes/2, leastBuffers))
	}
	return total
}

// mostConnections returns how many connections callers may have.
func (r *Relay) mostConnections() int64 {
	most := int64(r.settings().Limits.Connections)
	if bytes := r.memory.Load(); bytes > 0 {
		most = min(most, max(bytes/2/connectionSize, leastConnections))
	}
	return most
}
