// Package scale decides how many workers are wanted: from what the data plane
// has counted, between a minimum and a maximum.
//
// Start from Scaler (New, Decide) and Sample. It starts nothing and reads no
// clock: whoever drives it hands in counters every 250 ms and acts upon the
// Decision. docs/workers.md tells how it decides, in pictures.
//
//  1. The load is the arrivals per second times the slot time of a call (Little's
//     law): slots that would be busy on average if nobody ever waited. Calls that
//     wait or are refused arrive all the same, so a saturated service does not
//     hide its load.
//  2. For a load of R slots R + 1.5 sqrt(R) are wanted, more if arrivals come
//     in bursts: the spread of the number of calls at a time grows with the square
//     root of its mean.
//  3. A sudden rise counts from the moment from which it is certain, a slope leads
//     on to the moment at which a worker started now would be ready.
//  4. Calls that would wait longer than a worker takes to start, and calls that are
//     refused for want of time, ask for more at once.
//  5. More workers than can have CPU and memory are not asked for, nor any while
//     those that are wanted do not come up.
//  6. One worker less is wanted at a time, when for five minutes the load, and
//     three standard deviations of what is known of it, would have fitted into one
//     less with 2 sqrt(R) to spare. An opposite change soon after makes the next one
//     wait longer.
//
// Bounds: 130 KiB of samples, whatever the load; at most maxChanges changes in a
// minute, whatever the samples say.
package scale
