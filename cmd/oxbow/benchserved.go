package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"oxbow/internal/bench"
	"oxbow/internal/bench/capped"
	"oxbow/internal/bench/ways"
)

// servedHost measures this program as the server: filled once for each layout, without a limit of memory, and put back to that for each way.
type servedHost struct {
	program   string
	folder    string // of all
	temporary bool
	memory    int64
	out       io.Writer
	server    *capped.Server // of the place that is open
}

// leastServed is the least memory that a server is run with: a small cache, memtables, a heap of two fifths of it, and room for the page cache.
const leastServed = 128 << 20

func newServedHost(o *benchPurgeOptions, out io.Writer) (*servedHost, error) {
	if o.memory < leastServed {
		return nil, fmt.Errorf("--memory must be at least %d MiB", leastServed>>20)
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	h := &servedHost{program: program, folder: o.dir, memory: int64(o.memory), out: out}
	if h.folder == "" {
		h.temporary = true
		if h.folder, err = os.MkdirTemp("", "oxbow-bench-"); err != nil {
			return nil, fmt.Errorf("make a folder for the data: %w", err)
		}
	}
	if o.End, err = h.describe(filled{o.Documents, o.Size, time.Now()}); err != nil {
		return nil, err
	}
	return h, nil
}

// filled says what a folder's data is.
type filled struct {
	Documents int64     `json:"documents"`
	Size      int       `json:"documentBytes"`
	End       time.Time `json:"end"`
}

// describe writes down what the folder is about to hold, unless it holds that already, and returns the instant at which its data ends.
func (h *servedHost) describe(wanted filled) (time.Time, error) {
	file := filepath.Join(h.folder, "data.json")
	text, err := os.ReadFile(file)
	if err == nil {
		var there filled
		if err := json.Unmarshal(text, &there); err != nil {
			return time.Time{}, fmt.Errorf("read %s: %w", file, err)
		}
		if there.Documents != wanted.Documents || there.Size != wanted.Size {
			return time.Time{}, fmt.Errorf("%s has %d documents of %d bytes: name another folder, or as many", h.folder, there.Documents, there.Size)
		}
		return there.End, nil
	}
	others, err := os.ReadDir(h.folder)
	if err == nil && len(others) > 0 {
		return time.Time{}, fmt.Errorf("%s holds %s: name a folder that is empty, or one with the data of a run before", h.folder, others[0].Name())
	}
	if text, err = json.Marshal(wanted); err == nil {
		if err = os.MkdirAll(h.folder, 0o700); err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("write down what the data is: %w", err)
	}
	return wanted.End, nil
}

// tidy removes what the next run can't use.
func (h *servedHost) tidy() error {
	if h.temporary {
		return os.RemoveAll(h.folder)
	}
	return errors.Join(os.RemoveAll(h.data()), os.Remove(h.file()))
}

// file is the configuration of the server that runs.
func (h *servedHost) file() string { return filepath.Join(h.folder, "oxbow.yaml") }

// data is where the server that runs has its data; saved is what it is put back to.
func (h *servedHost) data() string { return filepath.Join(h.folder, "data") }

func (h *servedHost) saved(split bool) string {
	return filepath.Join(h.folder, map[bool]string{false: "saved-whole", true: "saved-split"}[split])
}

// config is the server's configuration, with a limit of memory or without. What the collection keeps is far from what the data needs: nothing goes by itself.
func (h *servedHost) config(split bool, memory int64) string {
	text := fmt.Sprintf("listen: 127.0.0.1:0\nbackends:\n  local: {embedded: %q}\n", h.data())
	if memory > 0 {
		const memtable, memtables = 4 << 20, 5
		cache := memory / 16
		// The key's least is more than a small server needs; what its heap really may have is told by GOMEMLIMIT.
		text = fmt.Sprintf("listen: 127.0.0.1:0\nmemory: %dMiB\nbackends:\n  local: {embedded: %q, cache: %dMiB, memtable: %dMiB}\n",
			(cache+memtables*memtable)>>20+256, h.data(), cache>>20, memtable>>20)
	}
	if split {
		text += "collections:\n  bench.log: {time: {field: time, every: day}, keep: 30d, hold: 0s, ahead: 2}\n"
	}
	return text
}

// Open implements ways.Host.
func (h *servedHost) Open(ctx context.Context, split bool, fill func(ctx context.Context, p *ways.Place) error) (*ways.Place, error) {
	if _, err := os.Stat(h.saved(split)); err != nil {
		if err := h.fill(ctx, split, fill); err != nil {
			return nil, err
		}
	}
	if err := capped.Restore(h.data(), h.saved(split)); err != nil {
		return nil, err
	}
	p, err := h.start(ctx, split, h.memory)
	if err != nil {
		return nil, err
	}
	p.Memory = ways.Memory{Bytes: h.server.Limit, By: "a control group, page cache included", Group: true}
	if h.server.Limit == 0 {
		p.Memory = ways.Memory{By: "no control group could be made: " + h.server.Why}
		fmt.Fprintln(h.out, "the server's memory is not limited, and no run counts:", h.server.Why)
	}
	return p, nil
}

// fill fills a server's folder and saves it.
func (h *servedHost) fill(ctx context.Context, split bool, fill func(ctx context.Context, p *ways.Place) error) (err error) {
	if err := os.RemoveAll(h.data()); err != nil { // of the other layout
		return fmt.Errorf("empty the server's folder: %w", err)
	}
	p, err := h.start(ctx, split, 0)
	if err != nil {
		return err
	}
	err = fill(ctx, p)
	if err == nil {
		err = settle(ctx, p)
	}
	if err := errors.Join(err, h.Close(context.WithoutCancel(ctx), p)); err != nil {
		return err
	}
	if err := os.Rename(h.data(), h.saved(split)); err != nil {
		return fmt.Errorf("save what was filled: %w", err)
	}
	return nil
}

// start starts the server on its folder and connects to it.
func (h *servedHost) start(ctx context.Context, split bool, memory int64) (*ways.Place, error) {
	if err := os.WriteFile(h.file(), []byte(h.config(split, memory)), 0o600); err != nil {
		return nil, fmt.Errorf("write the server's configuration: %w", err)
	}
	var environment []string
	if memory > 0 {
		environment = []string{fmt.Sprintf("GOMEMLIMIT=%dMiB", memory*2/5>>20)}
	}
	var err error
	if h.server, err = capped.Start(ctx, memory, environment, h.program, "serve", "-c", h.file()); err != nil {
		return nil, err
	}
	p := &ways.Place{URI: "mongodb://" + h.server.Address, Database: "bench", Collection: "log"}
	if split {
		p.Split = ways.Layout
	}
	if p.Client, err = connect(ctx, p.URI); err != nil {
		return nil, errors.Join(err, h.server.Stop())
	}
	return p, nil
}

// Close implements ways.Host.
func (h *servedHost) Close(ctx context.Context, p *ways.Place) error {
	return errors.Join(p.Client.Disconnect(ctx), h.server.Stop())
}

// settle waits until the store has put in order what was written: for three seconds nothing changes, or two minutes are over.
func settle(ctx context.Context, p *ways.Place) error {
	const steps, still = 120, 3
	last, same := int64(-1), 0
	for range steps {
		store, err := bench.Stored(ctx, p.Client)
		if err != nil {
			return err
		}
		if store == nil || store.TableBytes == last {
			if same++; same == still {
				return nil
			}
		} else {
			same = 0
		}
		if store != nil {
			last = store.TableBytes
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Second):
		}
	}
	return nil
}
