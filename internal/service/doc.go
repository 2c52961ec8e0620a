// Package service is what a process is made of that serves callers: the parts that
// cabrank run and cabrank socket serve have both, made from their configuration.
//
// Start from Sockets: callers over WebSocket, and the broker that joins them.
//
// It opens no listener: who brings the requests has it.
package service
