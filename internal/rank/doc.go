// Package rank decides which call runs where and when: who gets a free slot,
// who waits, who is refused. It knows no process, no socket, no clock and no
// goroutine; the caller hands in every instant and delivers every answer.
//
// Start with [Rank], [Ticket] and [Lease]. What happens by default:
//
//  1. A call takes a free slot at once, on the ready endpoint that has the
//     smallest share of its slots in use; ties go round ([LeastLoaded]).
//  2. Without a free slot it waits in one queue, first come first served
//     ([FIFO]). While no endpoint is ready calls wait like any others.
//  3. A queue at its bound refuses newcomers ([BoundedLength]).
//  4. A freed slot goes to the head of the queue before anyone else can see
//     it, so a free slot and a waiting call never exist side by side.
//  5. A slot whose worker refused a call pauses, and the call goes back to the
//     head of the queue (rule R1).
//  6. A call whose deadline has passed is never given a slot.
//
// Points 1 to 3 are the functions of [Options]; others go in files beside
// theirs (R21).
//
// # Concurrency
//
// Every method may be called from any goroutine. One mutex guards a Rank and it
// is a leaf (R23): nothing is called out under it except the functions of
// Options. Grants are therefore returned, not delivered: whoever receives a
// list of grants unlocks whatever it holds and calls Deliver on each.
//
// Instants are monotonic time since the process began. Those of different
// callers may be slightly out of order; a duration that would come out negative
// counts as zero.
package rank

// broken stops the program on a broken invariant: a caller's mistake, after
// which slots would be counted wrong for ever.
func broken(what string) {
	panic("internal error: " + what) //nolint:forbidigo // a broken invariant, named by every caller
}
