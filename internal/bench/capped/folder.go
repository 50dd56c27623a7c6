package capped

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Restore makes folder to what saved is, and takes all of it out of the page cache. Tables never change once they are written, so they are
// linked and not copied.
func Restore(folder, saved string) error {
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("empty %s: %w", folder, err)
	}
	err := filepath.WalkDir(saved, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(saved, path)
		if err != nil {
			return err
		}
		to := filepath.Join(folder, relative)
		switch {
		case entry.IsDir():
			return os.MkdirAll(to, 0o700)
		case strings.HasSuffix(path, ".sst"):
			if err := os.Link(path, to); err != nil {
				return err
			}
		default:
			if err := copyFile(to, path); err != nil {
				return err
			}
		}
		return forget(to)
	})
	if err != nil {
		return fmt.Errorf("restore %s: %w", folder, err)
	}
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
