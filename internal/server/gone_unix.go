//go:build unix

package server

import (
	"crypto/tls"
	"errors"
	"net"
	"syscall"
)

// isGone reports whether the peer has closed the connection, without taking a byte off it and without waiting for whoever reads it.
func isGone(nc net.Conn) (gone bool) {
	if encrypted, ok := nc.(*tls.Conn); ok {
		return isGoneEncrypted(encrypted)
	}
	onDescriptor(nc, func(fd int) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(fd, b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		waiting := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
		gone = err != nil && !waiting || err == nil && n == 0
	})
	return gone
}

// onDescriptor calls do with a connection's descriptor, which stays open meanwhile; not at all when it's closed already.
func onDescriptor(nc net.Conn, do func(fd int)) {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return
	}
	// Its error is that of a connection closed on this side, whose goroutine ends by itself.
	_ = raw.Control(func(fd uintptr) { do(int(fd)) })
}
