package capped

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Group is a control group with a memory limit.
type Group struct {
	folder string
	limit  string // the file of it
}

// versions are the two kinds of memory controller, by where each is mounted and the file of its limit. A group
// stands beside those of the machine, at the top, so that none of theirs is touched; that takes root
// (https://docs.kernel.org/admin-guide/cgroup-v2.html, https://docs.kernel.org/admin-guide/cgroup-v1/memory.html).
var versions = []struct{ mount, limit string }{
	{"/sys/fs/cgroup", "memory.max"},
	{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
}

// NewGroup makes a group of its own. The error says why the machine does not allow it.
func NewGroup(bytes int64) (*Group, error) {
	var errs []error
	for _, v := range versions {
		g, err := newGroup(v.mount, v.limit, bytes)
		if err == nil {
			return g, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("make a control group: %w", errors.Join(errs...))
}

func newGroup(mount, limit string, bytes int64) (*Group, error) {
	folder := filepath.Join(mount, "oxbow-bench-"+strconv.Itoa(os.Getpid()))
	if _, err := os.Stat(filepath.Join(mount, "cgroup.procs")); err != nil {
		return nil, err // no controller: a folder made here would be an ordinary one
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, err
	}
	g := &Group{folder: folder, limit: filepath.Join(folder, limit)}
	// Writing does not make a file here; where the controller is not on, there is none.
	if err := write(g.limit, bytes); err != nil {
		return nil, errors.Join(err, g.Remove())
	}
	if swap := filepath.Join(folder, "memory.swap.max"); exists(swap) {
		if err := write(swap, 0); err != nil {
			return nil, errors.Join(err, g.Remove())
		}
	}
	return g, nil
}

func write(file string, n int64) error {
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.FormatInt(n, 10))
	return errors.Join(err, f.Close())
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// Processes is the file that a process writes its number to in order to join.
func (g *Group) Processes() string { return filepath.Join(g.folder, "cgroup.procs") }

// Limit reads the limit as the kernel took it, in bytes.
func (g *Group) Limit() (int64, error) {
	text, err := os.ReadFile(g.limit)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// Remove removes the group, whose processes have ended; the kernel may need a moment to see that.
func (g *Group) Remove() error {
	var err error
	for range 50 {
		if err = os.Remove(g.folder); !errors.Is(err, syscall.EBUSY) {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}
