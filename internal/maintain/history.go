package maintain

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/mongoerr"
)

// Entry is one stretch of a job's work: a pass, or a part of one, under one lease.
type Entry struct {
	Job       string    `bson:"job" json:"job"`
	N         int64     `bson:"n" json:"n"` // counts the entries of the job
	Token     int64     `bson:"token" json:"token"`
	Owner     string    `bson:"owner" json:"owner"`
	Begin     time.Time `bson:"begin" json:"begin"`
	End       time.Time `bson:"end" json:"end"`
	State     State     `bson:"state" json:"state"` // that the job was in afterwards
	Reason    string    `bson:"reason,omitempty" json:"reason,omitempty"`
	Steps     int64     `bson:"steps" json:"steps"`
	Documents int64     `bson:"documents" json:"documents"`
	Bytes     int64     `bson:"bytes" json:"bytes"`
	Skipped   []Skip    `bson:"skipped,omitempty" json:"skipped,omitempty"`
}

// keptEntries is how many entries of a job's history are kept.
const keptEntries = 200

// storedEntry is an Entry as it is stored.
type storedEntry struct {
	ID    string `bson:"_id"`
	Entry `bson:",inline"`
}

// addEntry adds an entry to a job's history and forgets the oldest. One that is there already was told by somebody else.
func (s *Store) addEntry(ctx context.Context, e *Entry) error {
	err := s.insert(ctx, historyStored, storedEntry{fmt.Sprintf("%s/%d/%d", e.Job, e.Token, e.N), *e})
	if mongoerr.Is(err, mongoerr.DuplicateKey) {
		err = nil
	}
	if old := e.N - keptEntries; err == nil && old > 0 {
		_, err = s.delete(ctx, historyStored, driver.D{{Key: "job", Value: e.Job}, {Key: "n", Value: driver.D{{Key: "$lte", Value: old}}}})
	}
	if err != nil {
		return fmt.Errorf("keep the history of job %s: %w", e.Job, err)
	}
	return nil
}

// History returns the latest entries of a job's history, oldest first; most bounds their number, 0: all that are kept. An entry that is none says so in its Reason.
func (s *Store) History(ctx context.Context, id string, most int) ([]Entry, error) {
	docs, err := s.find(ctx, historyStored, driver.D{{Key: "job", Value: id}}, driver.D{{Key: "n", Value: -1}}, most)
	if err != nil {
		return nil, fmt.Errorf("read the history of job %s: %w", id, err)
	}
	entries := make([]Entry, len(docs))
	for i, doc := range docs {
		e := &entries[len(docs)-1-i]
		if err := driver.Unmarshal(doc, e); err != nil {
			*e = Entry{Job: id, Reason: fmt.Sprintf("this entry can't be read: %v", err)}
		}
	}
	return entries, nil
}

// tellEntry puts down how a stretch of work ended: in the history, unless nothing came of it, and in the job; with the same write it may free the lease.
func (h *run) tellEntry(e ending, free bool) error {
	wall, monotonic := h.opts.Clock()
	h.mu.Lock()
	from, pass := h.mu.stretch, h.mu.pass
	entry := Entry{
		Job: h.spec.ID, N: h.mu.entries + 1, Token: h.held.token, Owner: h.host, Begin: from.begin.wall, End: wall, State: e.state, Reason: e.reason,
		Steps: pass.Steps - from.pass.Steps, Documents: pass.Documents - from.pass.Documents, Bytes: pass.Bytes - from.pass.Bytes,
		Skipped: lessSkips(pass.Skipped, from.pass.Skipped),
	}
	told := entry.Documents > 0 || len(entry.Skipped) > 0 || !e.over
	if told {
		h.mu.entries++
	}
	h.mu.spent, h.mu.stretch.begin = h.spentNow(monotonic), reading{wall, monotonic}
	set := append(h.progress(), driver.E{Key: "state", Value: e.state}, driver.E{Key: "reason", Value: e.reason}, driver.E{Key: "next", Value: e.next},
		driver.E{Key: "because", Value: e.reason}, driver.E{Key: "notBefore", Value: e.next}, driver.E{Key: "last", Value: entry}, driver.E{Key: "entries", Value: h.mu.entries})
	if free {
		set = append(set, driver.E{Key: "lease.owner", Value: ""})
	}
	if e.ended {
		set = append(set, driver.E{Key: "ended", Value: e.state})
	}
	h.mu.Unlock()
	if told {
		h.logEntry(&entry)
	}
	return h.store(func(ctx context.Context) error {
		if told {
			// Where a disk is full, that the job drops may be what frees it: it is done, and the lease is given back, whether or not there is room for its history.
			if err := h.opts.Store.addEntry(ctx, &entry); mongoerr.Is(err, mongoerr.OutOfDiskSpace) {
				h.warnings.tell(h.spec.ID, "there is no room for the history of a job", err)
			} else if err != nil {
				return err
			}
		}
		return h.opts.Store.put(ctx, h.held, driver.D{{Key: "$set", Value: set}})
	})
}

// cutOff is the entry of an owner that did not end its own.
func cutOff(seen *record, n int64) *Entry {
	return &Entry{
		Job: seen.ID, N: n, Token: seen.Lease.Token, Owner: seen.Lease.Host, Begin: seen.Pass.Begun, End: seen.Lease.Renewed, State: Waiting,
		Reason: "cut off: it did not renew its lease", Steps: seen.Pass.Steps, Documents: seen.Pass.Documents, Bytes: seen.Pass.Bytes, Skipped: seen.Pass.Skipped,
	}
}

// logEntry tells an entry of the history to whoever reads the log.
func (h *run) logEntry(e *Entry) {
	level := slog.LevelInfo
	if e.State == Failed || e.State == Held {
		level = slog.LevelWarn
	}
	h.opts.Log.Log(context.Background(), level, "job "+string(e.State), "job", e.Job, "on", h.spec.Namespace, "took", e.End.Sub(e.Begin), "steps", e.Steps,
		"documents", e.Documents, "reason", e.Reason)
}

// lessSkips takes counts off others.
func lessSkips(all, before []Skip) []Skip {
	var left []Skip
	for _, s := range all {
		for _, b := range before {
			if b.Reason == s.Reason {
				s.Count -= b.Count
			}
		}
		if s.Count > 0 {
			left = append(left, s)
		}
	}
	return left
}
