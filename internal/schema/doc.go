// Package schema knows what the messages of gRPC methods look like, and turns JSON into
// them and back.
//
// Start from Schema: it has the methods of some services, from files with descriptors
// and from what servers say of themselves by reflection, and asks again when it is told
// that the servers have changed, or for a method that is not known. Reflection is one
// conversation with a server, over whatever stream it is given; nothing here opens a
// socket.
//
// What the JSON is:
//
//  1. That of protobuf (protojson): names of fields in lowerCamelCase, and those of the
//     .proto file are read, too; 64-bit numbers are texts, enums names, bytes base64.
//  2. Fields of a request that are not known, and names of enums, are passed over: a page
//     may be newer than the workers.
//  3. An answer has its fields also where they are 0, "", false or empty: whoever reads
//     it does not have the .proto file. Messages that are not set, and optional fields,
//     are left out.
package schema
