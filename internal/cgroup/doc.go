// Package cgroup tells what this process may use of the machine, and what it and
// the processes it started do use: CPU quotas and memory limits of its control
// groups, memory and CPU time of process groups.
//
// Start from Find (the control groups of this process), UsableCPUs and
// ReadGroups. Everything is read from a file system that is handed in and has
// /proc and /sys, at each call anew: nothing is kept but where the control groups
// are, nothing is watched. Where the files are missing, as on macOS, the answer is
// that nothing is known; no error is ever returned, since nothing that the kernel
// says here may keep a service from starting.
//
// The package is Linux by what it reads, not by how it is built. It decides
// nothing: who scales and who recycles are others.
package cgroup
