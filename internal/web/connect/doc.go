// Package connect serves callers that speak Connect: unary calls as plain HTTP requests, by
// POST or GET, and streams of messages in frames, with messages in protobuf or JSON.
//
// Start from Handler. How it works:
//
//  1. A request becomes a call of gRPC. Messages in protobuf are passed on as they came, also
//     compressed ones; those in JSON are turned into protobuf by what describes their method.
//  2. A unary answer is held until its status is known, for that comes first here.
//  3. Streams leave as they come, with a flush where nothing more is there yet.
//
// It knows no connection and no queue: who opens calls is handed in. Source: Connect Protocol
// Reference.
package connect
