// Package methods has sockets call the gRPC methods of workers: a call whose URI is a
// method goes through the relay like any other, with JSON in place of messages.
//
// Start from Methods. What it keeps to:
//
//  1. Nothing can be called but what Options.Patterns name.
//  2. A call is accepted when the relay's queue has taken it. One that the queue does not
//     take is refused with 429 or 503; whatever goes wrong after that is a result,
//     {"error":{"code":"not_found","message":"..."}}, with the names of gRPC's codes as
//     Connect has them.
//  3. A call has its deadline, and ends with its context: the worker's stream is reset.
//  4. Workers are told who calls: x-forwarded-for, x-cabrank-user, x-cabrank-socket.
//     Nothing of the handshake is passed on to them.
//
// Each socket has a caller of its own in the relay, made for its first call, so that what
// bounds a connection bounds it. A call has a goroutine while it lasts.
package methods
