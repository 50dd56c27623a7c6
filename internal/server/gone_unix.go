//go:build unix

package server

import (
	"errors"
	"net"
	"syscall"
)

// isGone reports whether the peer has closed the connection, without taking a byte off it and without waiting for whoever reads it.
func isGone(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		waiting := errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
		gone = err != nil && !waiting || err == nil && n == 0
	})
	return err == nil && gone
}
