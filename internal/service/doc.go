// Package service is the running process: what `cabrank run` starts, joins and ends, and
// `cabrank socket serve`, which has sockets alone.
//
// Start from Run in service.go, which goes from top to bottom in the order in which things
// happen: configuration, start or takeover, serving, reload and upgrade, drain, end.
package service
