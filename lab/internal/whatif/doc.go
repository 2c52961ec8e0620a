// Package whatif says what numbers of workers and slots, and what ways to balance,
// would give to a forecast load: it draws arrivals and service times and sends them
// through the real rank under a virtual clock (package ranksim).
//
// Start from [Question] and [Question.Ask], which gives an [Answer]: a [Cell] for each
// number of workers, number of slots and [Policy], and for each policy the smallest
// number of workers that holds the thresholds.
//
//  1. Service times are those of a [Calibration]: what the service takes when as many
//     calls as it has slots are under way, and no call waits. Latencies under load have
//     waiting in them, which would be counted twice.
//  2. All cells of one number of slots meet the same calls, so that what differs is not
//     chance.
//  3. The same question gives the same answer.
//
// It calls nobody and reads no clock. What it does not know: that one call of a service
// makes the next one slow (draws are independent), that workers share processors in
// other ways than in the calibration, and the network between balancer and workers.
package whatif
