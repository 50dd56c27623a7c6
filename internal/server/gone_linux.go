package server

import (
	"crypto/tls"

	"golang.org/x/sys/unix"
)

// TCP states of a connection whose peer has closed it, or reset it (CLOSE and CLOSE_WAIT of Linux, tcp_states.h).
const (
	closed    = 7
	closeWait = 8
)

// isGoneEncrypted reports whether the peer of an encrypted connection has closed it. Its last word, encrypted too, may lie unread, so the bytes that
// wait don't tell.
func isGoneEncrypted(nc *tls.Conn) (gone bool) {
	onDescriptor(nc.NetConn(), func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		gone = err == nil && (info.State == closeWait || info.State == closed)
	})
	return gone
}
