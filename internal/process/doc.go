// Package process starts, watches and ends the children of this program, and tells what the
// system knows of them. It knows nothing of workers and calls.
//
// Start from Children (starts, reaps, ends them), Group (a child and all that it has
// started: signals, CPU time, sockets) and Lines (what it writes). RunKeeper is the body of
// the hidden subcommand "cabrank keeper".
//
// Each child leads a process group of its own. When this program dies, by whatever signal,
// the kernel (Linux) sends TERM to the leaders, and the keeper sends TERM and 2 s later KILL
// to the groups. A process that left its group (setsid) is out of reach.
//
// On Linux this program becomes a subreaper, and one goroutine reaps every child that was
// not started here. So while Children are open nothing else may start any, and there is
// one Children in a program. Other systems have neither subreaper, nor parent-death signal,
// nor what is read from /proc: there only the keeper ends orphans.
package process
