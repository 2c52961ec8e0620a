// Package quota puts processes into control groups of their own: with a quota of CPU
// time, and to count what each of them uses with all that it starts.
//
// Open finds a place where groups can be made, of version 1 or 2; Tree.Group makes one;
// Group.Enter is the command by which a process begins in it. Where the machine does
// not allow it Open says so in one line, with what to do.
//
// It knows nothing of what runs in the groups, and never moves a process.
package quota
