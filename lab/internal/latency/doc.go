// Package latency keeps how long calls took, in histograms of the HDR kind:
// three significant digits from a nanosecond to an hour, so that a difference
// of 5 % shows at any height, in memory that does not grow with the calls.
//
// A Histogram counts durations. Calls has two of them, for answers and for
// failures, and counts the failures by code. Both merge without loss, and are
// written in the compressed form (V2) that the other HdrHistogram tools read,
// as text inside JSON.
//
// It knows no call, no clock and no arm. What two arms say about each other is
// for package stats.
package latency
