// Package work is the worker that comes with the lab: a server of grpc-go whose calls
// sleep, and use CPU, for as long as their request says. So the service times of a
// scenario are drawn by whoever calls, and every arm gets the same.
//
// Serve runs one with health and reflection. Its slots are those of a pool of threads:
// a call holds one until it is done, also when nobody waits for it any more; more calls
// than slots wait without bound, or are refused. SIGUSR1 makes it slow and SIGUSR2 fast
// again: see Options.
package work
