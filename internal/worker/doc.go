// Package worker runs the child processes behind the relay: it starts them,
// finds out when they can take calls, watches them, restarts them and ends
// them. It knows no call: what the data plane sees comes in through Activity,
// what the rank must know goes out through Registry.
//
// Start from Supervisor (New, Start, Stop; Roll, Replace, Scale) and Status. Who
// decides which places have a worker is the foreman; what it may do next is a
// pure function, plan.next. RunKeeper is the body of
// the hidden subcommand "cabrank keeper".
//
// By default:
//
//  1. Each worker leads a process group of its own. Whatever is left of the
//     group when its leader exits is killed.
//  2. When cabrank dies, by whatever signal, the kernel (Linux) sends TERM to
//     the leaders, and the keeper sends TERM and 2 s later KILL to the groups.
//     A process that left its group (setsid) is out of reach.
//  3. A worker takes calls when its health service says SERVING or, without
//     that service, when it accepts a connection; never before the listener is
//     known to belong to its group.
//  4. A worker that exits is restarted after 100 ms, doubling to 30 s.
//  5. A worker that is busy is not asked and not judged. One that is silent
//     although it should speak is suspect and gets no new calls; one that hangs
//     is replaced (package health; docs/worker-health.md).
//
// How long things take at most, beyond what Options says:
//
//	exit of a leader → Registry.Down       at once (one goroutine wake-up)
//	worker answers   → Registry.Up         100 ms
//	SIGSTOP, SIGCONT → Down, Up            250 ms
//	server dies under its leader → Down    250 ms
//	worker overdue → Suspect               1.25 s, or HealthTimeout if that is less
//	worker speaks again → not suspect      250 ms
//	Stop                                   Options.StopTimeout + 7 s
//	after kill -9 of cabrank               2 s, then KILL
//
// On Linux the process becomes a subreaper, and one goroutine reaps every child
// that this package did not start. So while a Supervisor runs, nothing else in
// the process may start children, and there may be only one Supervisor. Other
// systems have neither subreaper, nor parent-death signal, nor the checks that
// read /proc (whose listener it is, whether a process is stopped): there the
// keeper alone stands against orphans. Linux without /proc has no such checks
// either, and says so in the log; what is left of a worker when its leader ends gets
// no time then.
package worker
