// Package result is what a run of a scenario has measured, and its files: run.json with
// the figures of all blocks, and beside it a raw record for each block, which are read
// one at a time, for they are large.
//
//	DIR/run.json        Run
//	DIR/raw/0001.json   traffic.Record of the first block, and so on
//
// It computes the figures of a block from its record. What two arms say about each
// other is for package stats, and how it is shown for package report.
package result
