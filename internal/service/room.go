package service

const (
	// Sockets have at most three quarters of the connections, so that calls over HTTP/2
	// find room however many pages are open.
	socketsNumerator, socketsDenominator = 3, 4
	// socketMemory is which part of the memory for callers sockets have at most.
	socketMemory = 4
	// pagesMemory is which part of that memory the metrics pages of workers have at most.
	pagesMemory = 4
)

// boundSockets bounds how many sockets there may be by how many connections may be.
func (s *service) boundSockets() {
	if s.sockets != nil {
		s.sockets.SetMost(int(s.relay.Stats().MostConnections * socketsNumerator / socketsDenominator))
	}
}

// setMemory tells how many bytes callers may take, of all kinds, and workers' metrics
// pages.
func (s *service) setMemory(bytes int64) {
	if s.scrape != nil {
		bytes -= s.scrape.store.SetMemory(bytes / pagesMemory)
	}
	if s.sockets != nil {
		waiting := min(int64(s.cfg.Socket.BufferTotal), bytes/socketMemory)
		s.sockets.SetBuffer(waiting)
		bytes -= waiting
	}
	s.relay.SetMemory(bytes)
	s.boundSockets()
}
