// Package trial runs a scenario: block after block, in the order that package stats
// draws, and keeps what was measured as it goes.
//
// For each block it has the processes of the arm started (Starter), starts the
// generators (package agent) with a part of the plan each, does to the arm what the load
// says, and writes the figures into run.json and the record into a file of its own. It
// never holds records of more than one block. When its context ends, the calls under way
// have their grace, and what was measured is kept.
//
// An arm whose front is "simulated" is a block of the same load, with the same arrivals and
// the same work, sent through the rank itself in virtual time (package ranksim). Before
// the first such block one of its workers is started and called with all slots busy and
// nobody waiting: latencies under load have waiting in them, which would be counted twice.
// What it does not know: that one call makes the next one slow, and that workers share
// processors in other ways than that one did.
//
// It draws no conclusion: that is for packages stats and report.
package trial
