//go:build unix

package server

import "syscall"

// mostFiles is how many files the process may have open, 0 if that is not known.
func mostFiles() int {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return int(min(uint64(l.Cur), 1<<30))
}
