// Package scale decides how many workers are wanted, from the counters of the data plane,
// between a minimum and a maximum.
//
// Start from Scaler (New, Decide) and Sample. It starts nothing and reads no clock: the
// caller hands in counters every 250 ms and acts upon the Decision. docs/workers.md shows
// how it decides, in pictures.
//
//  1. The load is the arrivals per second times the slot time of a call (Little's
//     law): slots that would be busy on average if no call ever waited. Calls that
//     wait or are refused count as arrivals as well, so a saturated service does not
//     hide its load.
//  2. For a load of R slots R + 1.5 sqrt(R) are wanted, more if arrivals come
//     in bursts: the spread of the number of calls at a time grows with the square
//     root of its mean.
//  3. A sudden rise counts as soon as it is certain; a slope is extended to the moment
//     at which a worker started now would be ready.
//  4. Calls that would wait longer than a worker takes to start, and calls that are
//     refused for lack of time, ask for more at once.
//  5. More workers are not wanted if they would have no CPU or memory, nor while the
//     wanted ones do not come up.
//  6. One worker less is wanted at a time, when for five minutes the load, plus three
//     standard deviations of its estimate, would have fitted into one less with
//     2 sqrt(R) to spare. An opposite change soon after makes the next one wait longer.
//
// Bounds: 130 KiB of samples, whatever the load; at most maxChanges changes in a
// minute, whatever the samples are.
package scale
