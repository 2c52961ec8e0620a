package callee

import (
	"log/slog"
	"time"
)

// Options of a Callee. Only Redis must be given.
type Options struct {
	// Redis is HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DB, rediss:// with TLS, or
	// unix:///PATH. Behind a "?" may be addr=HOST:PORT, more nodes of a Cluster;
	// master_set=NAME, which makes all of them Sentinels; cacert=FILE, cert=FILE and
	// key=FILE of TLS.
	Redis string

	// Workers is how many calls run at a time, of all functions together. 100 if zero.
	// A call that has not been answered takes its place until its time is over.
	Workers int

	// Middleware is around every function, the first one outermost.
	Middleware []Middleware

	// DeadAfter is how long a callee may be silent until another one gets the calls that
	// it has taken AtLeastOnce. 5 s if zero, 250 ms at least. A callee that is only slow
	// for so long has them run twice; a call that has less time expires.
	DeadAfter time.Duration

	// Log is told when a function panics, and when Redis is lost and found. Nil:
	// slog.Default().
	Log *slog.Logger
}

// Stats is what a Callee has done since its start.
type Stats struct {
	// Taken is the calls that came.
	Taken uint64
	// Answered is those whose result was stored, and Failed those of them whose result
	// is an error.
	Answered, Failed uint64
	// Expired is those whose time was over, before the function ran or after it, and those
	// whose caller has left.
	Expired uint64
	// Panicked is how often a function has.
	Panicked uint64
	// GivenBack is how many calls of others, which were dead, were put back.
	GivenBack uint64
	// Running is how many calls have not ended.
	Running int
}
