// Package method finds out what a gRPC method takes and makes the bytes of its
// requests, so that any service can be put under load without generated code.
//
// FromServer and FromFiles describe a Method: by server reflection, or by .proto
// files. Method.Requests reads a template, JSON with placeholders, and gives
// Requests, which tell the encoded messages of each call by its number; package caller
// sends them.
//
// What it does with a template, in this order:
//
//  1. The text is cut into JSON documents (source).
//  2. Each is read twice by protojson, with two marks in place of each placeholder.
//     Where the two messages differ, a placeholder stands (layout).
//  3. The rest is encoded once. A call fills in what differs (part).
//
// It makes no call but those of reflection, and runs nothing that a template says.
package method
