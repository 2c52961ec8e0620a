// Package testkit holds what tests share: one helper that waits for an event,
// a check for goroutines left behind, a scripted HTTP/2 peer for both roles.
// Only tests import it.
package testkit
