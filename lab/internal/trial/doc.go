// Package trial runs a scenario: block after block, in the order that package stats
// draws, and keeps what was measured as it goes.
//
// For each block it has the processes of the arm started (Starter), starts the
// generators (package agent) with a part of the plan each, does to the arm what the load
// says, and writes the figures into run.json and the record into a file of its own. It
// never holds records of more than one block. When its context ends, the calls under way
// have their grace, and what was measured is kept.
//
// It draws no conclusion: that is for packages stats and report.
package trial
