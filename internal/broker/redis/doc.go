// Package redis is a broker over a Redis (7 or later) or Valkey, a Cluster of them, or
// one that Sentinels watch, so that servers, callees and sockets of several machines
// meet: also those of juggler.0's old programs, whose keys and payloads it uses
// (docs/juggler.md).
//
// Start from Open. How it works:
//
//  1. One goroutine sends all requests that have gathered in one pipeline: a call is SET
//     and LPUSH, an event PUBLISH. So events keep their order.
//  2. All sockets of a server have one list of results. One BLMPOP takes many of them at
//     a time; the broker's own ids say to which call a result belongs.
//  3. One connection has all subscriptions. When it breaks it is opened again with all
//     of them; events of the time between are lost, which OnGap tells. Nothing is
//     published meanwhile.
//  4. Expired entries of lists are swept, also those of other servers.
//
// In a Cluster 1 and 2 exist for each master (see masters). A call goes by the slot of
// its URI, and its result comes to a list at the same master. An event goes to the master
// with the slot of its channel, and from there to all nodes; the connection of 3 is to
// any of them.
//
// A call that waits for its result when Redis breaks expires in its time.
package redis
