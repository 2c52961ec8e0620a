// Package ranksim simulates calls: it drives the real code of package rank under a
// virtual clock, without goroutines and without sleeping. The same input gives the same
// result, to the nanosecond.
//
// Start with [Workload], [System] and [Run]:
//
//  1. [Workload.Draw] makes the calls in advance: when each one comes, how long
//     its handler takes, when its caller stops waiting. So every system gets the same
//     calls.
//  2. [Run] sends them through a rank to simulated workers and does the work of
//     package relay: deadlines, the bound on the wait, refusals by workers (R1),
//     cancels (R5), hedges.
//  3. A [Loop] is callers that wait for each answer before they make their next
//     call, and an [Outage] is a time in which a worker does nothing.
//  4. [FirstCome] and [Preferring] compute ideals of the same calls, and [Early] what
//     balancers without a queue do; none knows anything of package rank.
//  5. [Result] has a record of each call, [Quantile] and [Share] sum it up.
//
// It measures how calls are ordered and which endpoints they get. It knows no network,
// no bytes and no processor: those are measured with real processes.
//
// # Concurrency
//
// A simulation runs on the goroutine of its caller and shares nothing with
// others; calls that were drawn may be read by many.
package ranksim
