// Package redislink is what all programs of ours that share a Redis have in common:
// how its address is read, how they come back to it, and what juggler.0's keys and
// entries are (docs/juggler.md).
//
// Start from Open.
package redislink
