// Package method finds out what a gRPC method takes and makes the bytes of its
// requests, so that any service can be put under load without generated code.
//
// FromServer and FromFiles describe a Method: by server reflection, or by .proto
// files. Method.Requests reads a template, JSON with placeholders, and gives
// Requests, which tell the encoded messages of each call by its number; package caller
// sends them. It makes no call but those of reflection, and runs nothing that a template
// says.
//
// A template is cut into JSON documents (template.go), each of which is read with the least
// and with the greatest values in place of its placeholders. A document without any is
// encoded then; any other is filled in and read for each call.
package method
