// Package simulated runs arms of a scenario without their workers: an arm whose front is
// "simulated" is a block of the same load, with the same arrivals and the same work, sent
// through the rank itself in virtual time (package ranksim). Set beside an arm that is real
// it says how good the simulation is; beside others, what so many workers would do.
//
// Start from New. Before the first block of such an arm one of its workers is started and
// called with all slots busy and nobody waiting: latencies under load have waiting in them,
// which would be counted twice.
//
// What it does not know: that one call makes the next one slow (times are drawn one by one),
// and that workers share processors in other ways than that one did.
package simulated
