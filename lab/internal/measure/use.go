package measure

import "time"

// Use is what a process has used since it began and holds now, with all that it has
// started.
type Use struct {
	// CPU is user and system time, also of children that have ended and that their
	// parent has waited for; theirs is counted in ticks of 10 ms.
	CPU time.Duration
	// RSS is what they hold in memory, in bytes, and PeakRSS the sum of the most that
	// each of them has held. Pages that several of them map count for each.
	RSS, PeakRSS int64
}
