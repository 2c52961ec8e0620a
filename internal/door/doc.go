// Package door is where callers come in: listeners that are opened, accepted on and
// left without a loss, and what the first bytes of a connection look like.
//
// Start from Listen and Door. How it works by default:
//
//  1. Listen opens an address, and says what to do where that is not possible;
//     ListenShared opens one that several processes have.
//  2. Door accepts on its listeners and hands each connection to one Server. Out of
//     descriptors it waits, for a second at most.
//  3. Drain takes what the kernel has accepted already before a listener closes;
//     Release leaves the socket to another process.
//
// It speaks no protocol: who serves a connection is for others to say.
package door
