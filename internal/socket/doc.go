// Package socket serves callers over WebSocket: they call functions, subscribe to channels
// and publish, by the protocols juggler.0 and juggler.1
// (docs/juggler.md). A Broker has the functions and channels.
//
// Start from Server. Its rules:
//
//  1. Requests of a socket overlap. ACK and NACK leave in the order of the requests, a
//     RES after its ACK, events of a channel in the order of the broker. A PUB goes out
//     when the SUBs before it are done.
//  2. No reply is dropped. If a client does not read its events in time the oldest are
//     dropped and counted; a socket of juggler.1 ends instead. A client that does not
//     even read its replies is not read from, and its socket ends.
//  3. All sockets share one memory budget, and each source has a part of it. When it is
//     used up, the sockets with most queued events lose them.
//  4. A function with several results waits while its caller has given no credit, or
//     has 64 KiB unread.
//  5. A silent socket is pinged, and ends if it stays silent.
//  6. Sockets that cost much take turns, and leave half of the cores to calls.
//
// A socket has one goroutine that reads, and another one while it has something to
// write. Locks, from the outer to the inner: hub.mu, Server.mu, session.mu, outbox.mu.
// No lock is held while the broker is called.
package socket
