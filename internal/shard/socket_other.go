//go:build !linux

package shard

import "net"

// socket drives a link over a raw socket, on Linux only: elsewhere a socket is driven
// like any other net.Conn.
type socket struct{ streamDriver }

func newSocket(*Link, net.Conn) *socket { return nil }

// poller waits for raw sockets.
type poller struct{}

func (*poller) stop() {}

func (*poller) lookOn() (more bool) { return false }
