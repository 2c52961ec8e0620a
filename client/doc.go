// Package client calls functions, publishes and subscribes over one WebSocket, by the
// protocols juggler.1 and juggler.0 (docs/juggler.md): against the
// servers of Cabrank, and against the old servers.
//
// Start from Dial, then Call, Client.Publish and Client.Subscribe. What it keeps to:
//
//  1. Nothing is made twice. When the connection ends, what was under way ends with a
//     DisconnectedError, which says whether it had been sent; whether to do it again is
//     for the caller to say. What begins later waits for the next connection, as long as
//     its context lets it.
//  2. The connection is made again, with pauses that grow and differ from client to
//     client, and all subscriptions with it.
//  3. A call ends at its deadline by the clock of this process, whatever the server does.
//     The server is told how long it may take.
//  4. Events of a subscription come in the order in which the server has sent them. A
//     subscription that nobody reads drops its oldest events, and the next one says how
//     many.
//  5. A server that is silent is pinged, and left if it stays silent.
//  6. What nobody wants any more is canceled, where the protocol can say so.
//  7. After Close no goroutine is left.
//
// It does not answer calls: that is package callee.
package client
