package shard

import "golang.org/x/sys/unix"

// acked implements Link.Acked.
func (d *socket) acked() (total uint64, behind bool) {
	info, err := unix.GetsockoptTCPInfo(d.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0, false // a Unix socket
	}
	return info.Bytes_acked, info.Unacked > 0 || info.Notsent_bytes > 0
}
