// Package socketcaller makes the calls of a load over WebSockets, with package client.
//
// There are two of them. Calls calls one function, each call over one of several sockets
// in turn. Events publishes: a call of it is an event, and is answered when all who have
// subscribed have it.
//
//   - What the server refuses (NACK), what has no result in time (EXP) and what was under
//     way when a connection ended fails, with a code of gRPC that is near.
//   - Both count messages by their kind, from the first call on.
package socketcaller
