// Package accesslog writes a line of JSON for finished calls: for those that ended
// with an error or were slow, and for a share of the others.
//
// Start from Log. A line is made where the call ends and put into a buffer of 256 KiB;
// one goroutine writes. What does not fit is dropped and counted, so that no call waits
// for a disk. File is a file that may be renamed or removed while it is written.
package accesslog
