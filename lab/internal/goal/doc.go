// Package goal says whether a load met what was asked of it, and at which highest
// rate it still does.
//
//  1. Parse reads thresholds such as "p99<100ms"; Thresholds.Judge holds a
//     traffic.Record against them.
//  2. Find makes runs of an open loop at one rate after the other until it knows
//     between which two rates the thresholds cease to hold.
//
// A record in which the generator was the limit is not judged, in either. Package goal
// makes no call itself: whoever searches hands in two functions that do.
package goal
