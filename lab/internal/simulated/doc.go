// Package simulated runs arms of a scenario without their workers: an arm whose front is
// "simulated" is a block of the same load, with the same arrivals and the same work, that
// package whatif sends through the rank in virtual time. Set beside an arm that is real it
// says how good the simulation is.
//
// Start from New. Before the first block of such an arm one of its workers is started
// and called with all slots busy, to find out what a call takes beside its work.
//
// It measures nothing else, and judges nothing.
package simulated
