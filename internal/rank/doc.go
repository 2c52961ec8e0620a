// Package rank decides which call runs where and when: which call gets a free slot,
// which one waits, which one is refused. It knows no process, no socket, no clock and no
// goroutine; the caller hands in every instant and delivers every answer.
//
// Start with [Rank], [Ticket] and [Lease]. What happens by default:
//
//  1. A call takes a free slot at once: on the endpoint with the lowest fraction of
//     slots in use among those that are not slow; ties go round ([Fastest]).
//     Now and then a slow endpoint is tried with a single call; a very slow one is
//     used only when waiting for another would take longer.
//  2. Without a free slot the call waits, and the endpoint is chosen when a slot is
//     free; with ByHash it waits for its own. Calls also wait while no endpoint is ready.
//  3. Callers share the slot time by [Account]. An account that uses about its share
//     or less has its calls served in the order of arrival; an account that uses more
//     comes after.
//  4. The calls of one account are served first come, first served, but newest
//     first for a moment whenever that would serve new ones too late ([Adaptive]).
//  5. A call that cannot end before its deadline, by what was learned of its
//     [Method], is refused instead of waiting, at once or when its turn has come
//     ([InTime], R16). A full queue refuses newcomers, unless another account has
//     more than its share of the queue.
//  6. Lanes have priorities and may have reserved slots ([LaneOptions]). Long calls
//     leave some slots to the others (R8).
//  7. A freed slot goes to a waiting call before anyone else can see it, so a
//     free slot and a waiting call that may have it never exist side by side.
//  8. A slot whose worker refused a call pauses, and the call goes back to the
//     head of its list (R1). The slot of a call that was cancelled while it ran
//     may be held as a ghost (R5).
//
// Order, admission and choice are functions of [Options]; alternatives go in files
// of their own (R21).
//
// # Concurrency
//
// Every method may be called from any goroutine. One mutex guards a Rank and it
// is a leaf (R23): under it the rank calls nothing but the functions of Options.
// So notices are returned, not delivered: the caller that gets a list of notices
// releases its own locks and calls Deliver on each.
//
// Instants are monotonic time since the process began. Instants from different
// callers may be slightly out of order; a duration that would come out negative
// counts as zero.
package rank

// broken stops the program on a broken invariant: a caller's mistake, after
// which slots would be counted wrong for ever.
func broken(what string) {
	panic("internal error: " + what) //nolint:forbidigo // a broken invariant, named by every caller
}
