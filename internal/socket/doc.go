// Package socket is callers over WebSocket: they call functions, subscribe to channels
// and publish, by the protocols juggler.0 and juggler.1 (docs/juggler.md). Functions and
// channels are behind a Broker.
//
// Start from Server. What it keeps to:
//
//  1. Requests of a socket overlap. ACK and NACK leave in the order of the requests, a
//     RES after its ACK, events of a channel in the order of the broker. A PUB goes out
//     when the SUBs before it are done.
//  2. No reply is dropped. Of events that a client does not read in time the oldest are,
//     and are counted; a socket of juggler.1 ends instead. Who does not even read its
//     replies is not read from, and ends.
//  3. All sockets share one budget of memory, of which each source has a part. When it is
//     used up, those with most events in their queue lose them.
//  4. A function that has several results waits while its caller has given no credit, or
//     has 64 KiB unread.
//  5. A socket that is silent is pinged, and ends if it stays silent.
//  6. Sockets that cost much take turns, and leave half of the cores to calls.
//
// A socket has one goroutine, which reads, and another one while there is something to
// write. Locks, from the outer to the inner: hub.mu, Server.mu, session.mu, outbox.mu.
// No lock is held while the broker is called.
package socket
