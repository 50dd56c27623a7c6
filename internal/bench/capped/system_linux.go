package capped

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// forget takes a file out of the page cache, for which it has to be on the disk.
func forget(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return err
	}
	return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
}

// apart keeps ctrl-C on the terminal from a process: it ends the measurement, and that ends the server.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
