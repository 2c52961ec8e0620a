// Package caller makes calls for the loads of package traffic: gRPC with grpc-go, which is
// what users run; Connect, gRPC-Web and gRPC with connect-go; and plain requests to a
// gateway (Gateway).
//
// Open finds a method and returns a Caller for it that can call: with grpc-go for what is
// plain gRPC, with connect-go for all else. Its Strategy says how calls share connections:
// all on one, on a pool, each on a new one, or spread by grpc-go's own round robin over the
// addresses of a name. Calls of all four kinds send the bytes that they are given; answers
// are counted and not decoded.
//
// It uses the settings that grpc-go, connect-go and net/http have by default, but for these:
// it knows no HTTP proxy, for a load through one would measure that; it dials by itself, to
// count connections; it takes no compressed answers; and a connection of HTTP/2 is full when
// the server says so, and then calls wait.
package caller
