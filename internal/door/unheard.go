package door

import (
	"net"
	"syscall"
	"time"
)

// UnheardFor is how long a peer on another machine may leave bytes, or the system's own
// questions, without any answer: its network is gone then. It is longer than what a switch
// or a machine that moves takes, and short enough that a slot comes back within a minute.
const UnheardFor = 40 * time.Second

// Away reports whether the peer of a connection is behind a network, as far as its
// address tells: without one an end cannot get lost.
func Away(nc net.Conn) bool {
	peer, ok := nc.RemoteAddr().(*net.TCPAddr)
	return ok && !peer.IP.IsLoopback()
}

// EndUnheard has the system end the connection of a peer that is away after UnheardFor,
// where it can; otherwise Linux tries again for a quarter of an hour.
func EndUnheard(nc net.Conn) {
	socket, ok := nc.(syscall.Conn)
	if !ok || !Away(nc) {
		return
	}
	if raw, err := socket.SyscallConn(); err == nil {
		_ = raw.Control(setUserTimeout) // a connection that is over needs none
	}
}
