// Package handover gives the listeners of a running cabrank to its successor, and takes
// them from a service manager (R20).
//
// Start from Inherit, which a process calls first; Upgrade, by which the running
// process starts its successor; and Predecessor, the other end of that conversation.
//
// How it works by default:
//
//  1. Listeners are opened by name: inherited from a service manager
//     (LISTEN_FDS), received from the process before, or bound anew.
//  2. An upgrade starts the program again with one end of a pair of sockets.
//     The new process starts its own workers and asks for the listeners when
//     enough of them are ready; until then nothing changes.
//  3. The new process is the owner once it has the listeners. If it ends
//     before, the old one goes on; if the old one ends before, so does the new one.
//  4. A service manager is told by sd_notify(3): READY, RELOADING, STOPPING,
//     MAINPID, WATCHDOG.
//
// It accepts no connection, binds nothing by itself, and knows no worker and no call:
// internal/service says when enough workers are ready and what stops when.
package handover
