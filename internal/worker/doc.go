// Package worker runs the child processes behind the relay: it starts them,
// finds out when they can take calls, watches them, restarts them and ends
// them. It knows no call: what the data plane sees comes in through Activity,
// what the rank must know goes out through Registry.
//
// Start from Supervisor (New, Start, Stop; Roll, Replace, Scale) and Status. The
// foreman decides which places have a worker; a pure function, plan.next, says what it
// may do next.
//
// By default:
//
//  1. Each worker leads a process group of its own. When the leader exits, the rest of
//     the group is killed.
//  2. When cabrank dies, by whatever signal, the kernel (Linux) sends TERM to
//     the leaders, and the keeper sends TERM and 2 s later KILL to the groups.
//     A process that left its group (setsid) is out of reach.
//  3. A worker takes calls when its health service says SERVING or, without
//     that service, when it accepts a connection; never before the listener is
//     known to belong to its group.
//  4. A worker that exits is restarted after 100 ms, doubling to 30 s.
//  5. A busy worker is not asked and not judged. A worker that is silent although it
//     should answer is suspect and gets no new calls; a worker that hangs is replaced
//     (package health; docs/worker-health.md).
//
// How long things take at most, beyond what Options says:
//
//	exit of a leader → Registry.Down       at once (one goroutine wake-up)
//	worker answers   → Registry.Up         100 ms
//	SIGSTOP, SIGCONT → Down, Up            250 ms
//	server dies under its leader → Down    250 ms
//	worker overdue → Suspect               1.25 s, or HealthTimeout if that is less
//	worker answers again → not suspect     250 ms
//	Stop                                   Options.StopTimeout + 7 s
//	after kill -9 of cabrank               2 s, then KILL
//
// While a Supervisor runs nothing else in this program may start children, and a second
// Supervisor is not allowed (package process). Where /proc is missing nobody sees which
// process listens and whether one is stopped, and the log says so; the rest of a group
// then gets no time to end after its leader.
package worker
