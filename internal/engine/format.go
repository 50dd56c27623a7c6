package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// formatVersion is the number of everything that docs/decisions/0001-on-disk-format.md fixes, the key encoding included.
const formatVersion = 1

// formatFile holds the number, in text, so that a build of any age can read it before it touches anything else.
const formatFile = "OXBOW"

const formatWord = "oxbow format "

// claim creates dir if it is missing and locks it against other processes.
func claim(fs vfs.FS, dir string) (*pebble.Lock, error) {
	if err := fs.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create data folder %q: %w", dir, err)
	}
	lock, err := pebble.LockDirectory(dir, fs)
	switch {
	case err == nil:
		return lock, nil
	case errors.Is(err, os.ErrPermission):
		return nil, fmt.Errorf("data folder %q is not writable: %w", dir, err)
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES), strings.Contains(err.Error(), "lock held"):
		return nil, fmt.Errorf("data folder %q is in use by another process: %w", dir, err)
	}
	return nil, fmt.Errorf("lock data folder %q: %w", dir, err)
}

// checkFormat reads the folder's format, or writes it into an empty folder.
func checkFormat(fs vfs.FS, dir string) error {
	path := fs.PathJoin(dir, formatFile)
	f, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return writeFormat(fs, dir, path)
	}
	if err != nil {
		return fmt.Errorf("read format of data folder %q: %w", dir, err)
	}
	text, err := io.ReadAll(io.LimitReader(f, 64))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("read format of data folder %q: %w", dir, err)
	}
	number, ok := strings.CutPrefix(strings.TrimSpace(string(text)), formatWord)
	n, err := strconv.Atoi(number)
	switch {
	case !ok || err != nil:
		return fmt.Errorf("data folder %q: %s is not a format file", dir, formatFile)
	case n > formatVersion:
		return fmt.Errorf("data folder %q was written by a newer Oxbow: format %d, this one reads %d", dir, n, formatVersion)
	case n < formatVersion:
		return fmt.Errorf("data folder %q has format %d, this Oxbow reads %d", dir, n, formatVersion)
	}
	return nil
}

// checkPebbleFormat refuses a folder whose Pebble format is higher than ours. Pebble would open it and go on in that format, in which a log that
// is synced late can be taken for a corrupt one: see pebbleFormat.
func checkPebbleFormat(fs vfs.FS, dir string) error {
	d, err := pebble.Peek(dir, fs)
	if err != nil {
		return fmt.Errorf("read Pebble's format of data folder %q: %w", dir, err)
	}
	if d.Exists && d.FormatMajorVersion > pebbleFormat {
		return fmt.Errorf("data folder %q was written by a newer Oxbow: Pebble's format %d, this one writes %d", dir, d.FormatMajorVersion, pebbleFormat)
	}
	return nil
}

// writeFormat marks a folder. One that holds somebody else's Pebble store is refused.
func writeFormat(fs vfs.FS, dir, path string) error {
	names, err := fs.List(dir)
	if err != nil {
		return fmt.Errorf("list data folder %q: %w", dir, err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST-") || name == "CURRENT" || strings.HasPrefix(name, "marker.manifest.") {
			return fmt.Errorf("data folder %q holds a store that is not Oxbow's", dir)
		}
	}
	next := path + ".new"
	f, err := fs.Create(next, vfs.WriteCategoryUnspecified)
	if err != nil {
		return fmt.Errorf("data folder %q is not writable: %w", dir, err)
	}
	_, err = fmt.Fprintf(f, "%s%d\n", formatWord, formatVersion)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write format of data folder %q: %w", dir, err)
	}
	if err := fs.Rename(next, path); err != nil {
		return fmt.Errorf("write format of data folder %q: %w", dir, err)
	}
	d, err := fs.OpenDir(dir)
	if err != nil {
		return fmt.Errorf("sync data folder %q: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync data folder %q: %w", dir, err)
	}
	return nil
}
