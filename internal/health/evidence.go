package health

import "time"

// Work is what the calls at an endpoint tell of it at one moment. The zero value is an
// endpoint that nobody calls; a zero time is never.
type Work struct {
	// InFlight is how many calls run there, of Slots at most.
	InFlight, Slots int
	// Answered is when it last answered a call to the end.
	Answered time.Time
	// Heard is when it last showed in an answer that a thread of its works. A refusal
	// does not, nor what a library says by itself when a deadline passes.
	Heard time.Time
	// Owed is when the oldest call began that runs there, has been sent to its end and
	// has not been answered with a single byte; Owing is how many such calls run there,
	// maybe a moment before that of InFlight. Other calls tell nothing: it may wait for
	// the rest of a request, or have nothing to stream.
	Owed  time.Time
	Owing int
	// GivenUp is how many calls like that of Owed were given up there since Heard, by
	// their callers or their deadlines: their handlers may run on (R5). First is when the
	// first of them began, and Left is when a call of any kind was last given up there.
	GivenUp     int
	First, Left time.Time
	// Latest is when the youngest began of the calls that Owed and GivenUp are about, and
	// Longest the longest time ever seen until an answer began to a call of their methods.
	Latest  time.Time
	Longest time.Duration
	// Method is the path of the call of Owed, or if there is none of the last of those
	// that GivenUp counts, at most 200 bytes.
	Method string
	// Overdue says that it is silent although calls there should long be over, while
	// others speak: its health is asked at once.
	Overdue bool
	// TurnsAway says that it ends connections with calls on them that it has not looked
	// at, and has answered nothing meanwhile. It gets one only now and then.
	TurnsAway bool
	// Sent is how many calls were ever sent there, those included that it has refused.
	Sent uint64
	// Served is how many calls have ended there, in whatever way, since cabrank began, but
	// for those that it has refused or never seen; Cuts is how many of them cabrank has
	// ended. They do not begin anew with the process.
	Served, Cuts uint64
	// Oldest is when the oldest call that runs there was sent; zero: none does.
	Oldest time.Time
}

// Earlier returns the earlier of two instants of which the zero time is none.
func Earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Later returns the later of two instants.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Said is what an endpoint said to the health question.
type Said uint8

const (
	// Nothing is no answer in time, or no connection.
	Nothing Said = iota
	// Refused is that it has no free thread.
	Refused
	// Fault is an answer that tells of a fault.
	Fault
	// NotServing is NOT_SERVING.
	NotServing
	// Library is that there is no health service, from a library that may say so by a
	// thread of its own, while all others hang.
	Library
	// NoService is an answer that says nothing of its health: it has no health service,
	// or none for us.
	NoService
	// Serving is SERVING.
	Serving
)

// Answer is what came of one health question. The zero value is an endpoint that was never
// asked.
type Answer struct {
	Said    Said
	Reason  string    // for the log; empty for a good one
	Asked   time.Time // when the question was put
	Working bool      // calls ran there meanwhile
	Overdue bool      // it was asked because Work.Overdue said so
}

// Process tells of the processes of an endpoint. Each look may cost a look at every process
// of the machine.
type Process interface {
	// CPU is how much CPU time they have used, if that is known.
	CPU() (used time.Duration, known bool)
	// Threads is how many threads the code of one of them has started, its first included
	// and those of libraries not; 0 if nobody can tell.
	Threads() int
	// HoldsThreads reports whether one of them is of a kind that always holds a thread for
	// each call, and may have more of them than slots: Ruby.
	HoldsThreads() bool
}

// IsGood reports whether by its answer the endpoint may have calls.
func (a *Answer) IsGood() bool { return a.Said >= Library }

// IsBusy reports whether the answer, or that there is none, is no wonder while calls run
// there: the question may wait behind them (R6).
func (a *Answer) IsBusy() bool { return a.Said <= Refused && a.Working }
