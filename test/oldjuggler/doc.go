// Package oldjuggler is the other side of juggler.0 for tests: a server, a callee and
// a client that behave as the programs do with which ours has to work, and which are
// no longer to be had.
//
// It was written from a description of their behavior, not from their text. It keeps
// their costs (two connections to Redis for each socket, ten round trips for each
// call) since it is the baseline of measurements, and those of their faults that the
// other side can see: results and events in any order, a close without a close frame,
// a call with an empty URI that ends the socket. It leaves out faults that only make
// tests fail by chance.
//
// Start from Server, Callee and Client. What is in Redis is in keys.go.
package oldjuggler
