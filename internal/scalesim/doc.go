// Package scalesim simulates a service whose number of workers follows the load:
// it drives the real code of package scale under a virtual clock, without
// goroutines and without sleeping. The same input gives the same result, to the
// nanosecond.
//
// Start with Plant and Run. Workers take time to start; calls arrive as a Poisson
// process of a changing rate, wait in one queue in the order of arrival, and run on
// any free slot. A fixed number of workers under the same calls is what to compare
// with.
//
// It knows no rank, no process, and no CPU or memory: what limits those set is
// tested in package scale, and that workers come and go without losing a call with
// real processes.
package scalesim
