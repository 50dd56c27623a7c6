package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
)

// ErrBeyondLoopback refuses an address that other machines could reach.
var ErrBeyondLoopback = errors.New("nobody has to log in, so Oxbow listens on loopback only (127.0.0.1, ::1 or localhost)")

// Listen opens the listener for "host:port", or for a Unix socket where the address is a path (it begins with a slash).
// An address beyond loopback, the empty host among them, is ErrBeyondLoopback where clients don't have to log in.
func Listen(address string, login bool) (net.Listener, error) {
	if strings.HasPrefix(address, "/") {
		return listenUnix(address)
	}
	addr, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %q: %w", address, err)
	}
	if !addr.IP.IsLoopback() && !login {
		return nil, fmt.Errorf("listen on %q: %w", address, ErrBeyondLoopback)
	}
	l, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// socketMode lets only the user of the process in, as MongoDB's default does.
const socketMode fs.FileMode = 0o700

// listenUnix takes the place of a socket that no process serves any more, which is one that refuses: a process too busy to accept does not.
func listenUnix(path string) (net.Listener, error) {
	if info, err := os.Stat(path); err == nil && info.Mode().Type() == fs.ModeSocket {
		nc, err := net.Dial("unix", path)
		switch {
		case err == nil:
			nc.Close()
			return nil, fmt.Errorf("listen on %q: another process serves it", path)
		case !errors.Is(err, syscall.ECONNREFUSED):
			return nil, fmt.Errorf("listen on %q: another process may serve it: %w", path, err)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove stale socket: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := os.Chmod(path, socketMode); err != nil {
		l.Close()
		return nil, fmt.Errorf("protect socket: %w", err)
	}
	return l, nil
}

// remoteOf is a client's address; empty on a Unix socket.
func remoteOf(nc net.Conn) string {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.String()
	}
	return ""
}
