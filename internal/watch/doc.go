// Package watch tells when connections that nobody reads from have something to be
// read, so that one that is silent needs no goroutine: on Linux alone.
package watch
