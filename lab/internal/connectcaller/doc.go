// Package connectcaller makes the calls that net/http carries, beside package caller, which
// makes gRPC calls with grpc-go: by Connect, gRPC-Web and gRPC with connect-go, and as plain
// requests to a gateway (Gateway).
//
// For returns the client that suits a Way: that of package caller for what is plain gRPC,
// a Client of this package for all else. Ready asks once whether the server understands
// the way, with a request that no handler gets to see.
//
// It uses the settings that connect-go and net/http have by default, but for these: it
// takes no compressed answers, as the other caller; a connection is full when the server
// says so, and then calls wait, as with grpc-go; it knows no proxy; and it dials by itself,
// to count connections.
package connectcaller
