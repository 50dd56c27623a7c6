//go:build unix

package archive

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// lockFolder keeps other processes out of a folder until the file is closed.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(errors.New("another process has it open"), f.Close())
	}
	return f, nil
}
