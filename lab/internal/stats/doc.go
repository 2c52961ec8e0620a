// Package stats says what a number of runs allow to say about two arms: is one
// better, by how much, are they about equal, or was there too little to tell.
//
// The unit is the block: one run of one arm, which gives one figure, such as
// its p99. The calls inside a run are not independent, they shared a queue and
// a minute of the machine; a million of them is still one run. Two blocks, one
// of each arm, make a pair: they had the same arrivals and ran close together,
// in random order (Plan). What counts is the ratio of the two figures.
//
//   - Judge takes the pairs of figures: of a primary one, which decides, and of
//     others, which are corrected for their number (Holm).
//   - The interval is Student's t on the logarithms of the ratios. Where a
//     figure is infinite or unknown it is made of order statistics.
//   - With fewer than MinPairs pairs there is no verdict.
//   - "About equal" is a claim of its own, with a margin that was stated
//     before (two one-sided tests), and not the absence of a difference.
//
// How often all this is wrong is measured, in the tests with known truth
// (calibration_test.go); docs/lab-method.md has the results.
//
// The package draws no conclusion about calls, knows no histogram, and reads
// no clock.
package stats
