// Package grpcwire reads and writes gRPC on the wire: the value of
// grpc-timeout, status codes and messages, the prefix of a message, and the two
// messages of the health service.
//
// All of it is pure functions on bytes. They know no connection and no clock,
// keep nothing, and may be called from any goroutine. Those whose name begins
// with Append add to the slice they are given and allocate only if it is too
// short; those whose name begins with Parse never allocate.
//
// Source: the gRPC documents "gRPC over HTTP2", "Status codes" and "GRPC
// Health Checking Protocol".
package grpcwire
