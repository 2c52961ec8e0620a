//go:build !linux

package admin

import "net"

// peerOf knows nothing here: the modes of folder and socket keep others out.
func peerOf(*net.UnixConn) (uid, pid int, known bool) { return 0, 0, false }
