// Package redis is a broker over a Redis (7 or later) or Valkey, a Cluster of them, or
// one that Sentinels watch, so that servers, callees and sockets of several machines
// meet: also those of juggler.0's old programs, whose keys and payloads it has
// (docs/juggler.md).
//
// Start from Open. How it works:
//
//  1. What is asked goes out by one goroutine, all that has gathered in one pipeline: a
//     call is SET and LPUSH, an event PUBLISH. So events keep their order.
//  2. All sockets of a server have one list of results, which one BLMPOP empties many at
//     a time; ids that are its own say to whom a result belongs.
//  3. One connection has all subscriptions. It is opened again when it breaks, and has
//     them all again; events of the time between are lost, which OnGap tells. Nothing is
//     published meanwhile.
//  4. Entries of lists whose time is over are swept, whoever has left them.
//
// In a Cluster each master has 1 and 2 for itself (see masters). A call goes by the slot
// of its URI, and its result comes to a list at the same master. An event goes to the
// master that has the slot of its channel, and from there to all nodes; the connection
// of 3 is to any of them.
//
// A call that waits for its result when Redis breaks expires in its time.
package redis
