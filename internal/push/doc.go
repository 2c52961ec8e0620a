// Package push is how an application speaks to sockets that callers hold open: it
// publishes events, sends them to a user or to one socket, ends sockets and
// subscriptions. docs/socket.md has its requests.
//
// Start from Serve. How it works by default:
//
//  1. The same four requests come as JSON by POST, or by gRPC (cabrank.push.v1), over one
//     port; gRPC over HTTP/2 without TLS.
//  2. A request is answered when the broker has it. Events of a publisher that waits for
//     its answers, of one channel, come in their order.
//  3. With a token all requests need it. A request of a web page is refused.
//
// It finds no socket: who has them is its Sockets.
package push
