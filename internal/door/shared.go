package door

import (
	"net"
	"time"
)

// sharedRest is how long a shared socket that gets no new connections may still
// get those that were begun: one round trip, and on a bad line the second try.
const sharedRest = 250 * time.Millisecond

// Shared is a listener of ListenShared that can be left without a loss.
//
// Where several processes listen on a port, the kernel chooses one for each new
// connection, and resets what waits at a socket that closes. Leave keeps them
// away from this one first.
type Shared struct{ *net.TCPListener }

// Leave has the kernel drop the first packet of connections that are new: the
// caller's system sends it again after a second, and by then this socket is gone
// and another process's is chosen. It returns for how long those may still come
// that have been answered already; 0 if the system cannot do that (it is for
// Linux), and they have to be lucky.
//
// Never for a socket that lives on in another process: it would be deaf.
func (s Shared) Leave() time.Duration {
	if err := ignoreNew(s.TCPListener); err != nil {
		return 0
	}
	return sharedRest
}
