//go:build !linux

package testbed

// RaisePriority does nothing.
func RaisePriority() (done string, putBack func()) { return "ordinary", func() {} }
