// Package grpcweb serves callers that speak gRPC-Web, binary and text: browsers, which cannot
// read the trailers of HTTP.
//
// Start from Handler. How it works:
//
//  1. A request becomes a call of gRPC with the same codec, deadline and compression. Its
//     messages are not read: they have gRPC's own frames.
//  2. The answer leaves as it comes, with a flush where nothing more is there yet. Its
//     trailers follow in a frame of the body, also those of an answer without messages.
//  3. A caller that leaves cancels the call.
//
// It knows no connection and no queue: who opens calls is handed in. Source: gRPC, "gRPC-Web".
package grpcweb
