package cursor

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"sync"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
)

// IdleTimeout is how long a cursor lives unused by default (MongoDB's parameter cursorTimeoutMillis).
const IdleTimeout = 10 * time.Minute

// Content is what a cursor yields: Batches or Replies. One call at a time.
type Content interface {
	Close() error
}

// Batches is content that the gateway puts into replies.
type Batches interface {
	Content
	// NextBatch appends the next documents to dst as the elements of a BSON array, with the keys "0", "1", …, without the array's length and final
	// zero byte. It stops at maxDocs documents (0: no limit) or before the batch exceeds maxBytes, but gives at least one document where
	// there is one. account is charged for what dst grows by; the batch ends early where there is no room. more is false when the content is
	// known to be exhausted.
	NextBatch(ctx context.Context, dst []byte, maxDocs, maxBytes int, account *memory.Account) (batch []byte, n int, more bool, err error)
}

// Replies is content that a backend puts into replies.
type Replies interface {
	Content
	// NextReply answers the client's getMore with a whole reply that holds docs documents. more is false when there is nothing behind it.
	NextReply(ctx context.Context, getMore bson.Document, account *memory.Account) (reply bson.Document, docs int, more bool, err error)
}

// Options describe a cursor.
type Options struct {
	Namespace string        // "db.collection", the application's
	Session   *SessionID    // nil: none
	User      string        // who opened it; "" while there are no users
	NoTimeout bool          // noCursorTimeout: the idle timeout does not apply; its session's end does
	Command   bson.Document // the command that opened it, for currentOp; copied, cut when large
}

// Registry holds the open cursors. Safe for concurrent use.
type Registry struct {
	idle   time.Duration
	memory *memory.Budget
	mu     struct {
		sync.Mutex
		closed  bool
		cursors map[int64]*entry
		totals  Totals
	}
}

// Totals count since the registry was made.
type Totals struct {
	Opened, TimedOut, Killed int64
}

type entry struct {
	Options
	id      int64
	content Content
	created time.Time
	lastUse time.Time
	batches int64
	docs    int64
	cancel  context.CancelCauseFunc // of the command that uses it; nil: not in use
	reason  *mongoerr.Error         // set when it was killed: what the next use gets
	killed  bool
}

// NewRegistry returns a registry whose cursors live unused for the timeout, and take entryBytes of the budget each beside what their contents
// take.
func NewRegistry(idle time.Duration, budget *memory.Budget) *Registry {
	r := &Registry{idle: idle, memory: budget}
	r.mu.cursors = make(map[int64]*entry)
	return r
}

// IdleTimeout is how long a cursor lives unused here.
func (r *Registry) IdleTimeout() time.Duration { return r.idle }

// entryBytes is what a registered cursor costs beside its content: the entry, its id in the map, the command that it keeps.
const entryBytes = 2 << 10

// Add takes a content over and returns its id, which is random, positive and fits in 63 bits. On an error (ShutdownInProgress,
// ExceededMemoryLimit) the content is closed.
func (r *Registry) Add(content Content, o Options, now time.Time) (int64, error) {
	if err := r.memory.Reserve(memory.Cursors, entryBytes); err != nil {
		content.Close()
		return 0, err
	}
	o.Command = cutCommand(o.Command)
	e := &entry{Options: o, content: content, created: now, lastUse: now}
	r.mu.Lock()
	if r.mu.closed {
		r.mu.Unlock()
		r.memory.Release(memory.Cursors, entryBytes)
		content.Close()
		return 0, mongoerr.New(mongoerr.ShutdownInProgress, "Cannot register new cursors as we are in the process of shutting down")
	}
	defer r.mu.Unlock()
	for e.id == 0 || r.mu.cursors[e.id] != nil {
		var b [8]byte
		rand.Read(b[:])
		e.id = int64(binary.LittleEndian.Uint64(b[:]) >> 1)
	}
	r.mu.cursors[e.id] = e
	r.mu.totals.Opened++
	return e.id, nil
}

// keptCommand is how much of the command that opened a cursor is kept, in bytes.
const keptCommand = 1 << 10

func cutCommand(command bson.Document) bson.Document {
	if len(command) > keptCommand {
		return nil
	}
	return append(bson.Document(nil), command...)
}

// Use is who asks for a cursor.
type Use struct {
	ID        int64
	Namespace string
	Session   *SessionID
	User      string
}

// Pinned is a cursor in use by one command, which calls Unpin once.
type Pinned struct {
	registry *Registry
	entry    *entry
}

// Pin takes a cursor for the use of one command. The context that it returns ends, with CursorKilled as its cause, when the
// cursor is killed meanwhile. The errors are MongoDB's: CursorNotFound, CursorInUse, Unauthorized for another namespace or
// user, 50799 to 50801 for another session (as a router gives them), or the reason that the cursor was killed for.
func (r *Registry) Pin(ctx context.Context, u Use) (*Pinned, context.Context, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.mu.cursors[u.ID]
	if e == nil {
		return nil, nil, notFound(u.ID)
	}
	if err := e.allow(u); err != nil {
		return nil, nil, err
	}
	if e.killed {
		r.forgetLocked(e)
		return nil, nil, e.reason
	}
	if e.cancel != nil {
		return nil, nil, mongoerr.New(mongoerr.CursorInUse, "Cursor already in use (id: %d).", u.ID)
	}
	ctx, e.cancel = context.WithCancelCause(ctx)
	return &Pinned{registry: r, entry: e}, ctx, nil
}

func notFound(id int64) *mongoerr.Error {
	return mongoerr.New(mongoerr.CursorNotFound, "Cursor not found (id: %d).", id)
}

// allow checks that a use may have the cursor.
func (e *entry) allow(u Use) error {
	if e.User != u.User {
		return mongoerr.New(mongoerr.Unauthorized, "cursor id %d was not created by the authenticated user", e.id)
	}
	if e.Namespace != u.Namespace {
		return mongoerr.New(mongoerr.Unauthorized, "Requested getMore on namespace '%s', but cursor belongs to a different namespace %s", u.Namespace, e.Namespace)
	}
	switch {
	case e.Session == nil && u.Session != nil:
		return mongoerr.New(50799, "Cannot run getMore on cursor %d, which was not created in a session, in session %s", e.id, u.Session)
	case e.Session != nil && u.Session == nil:
		return mongoerr.New(50800, "Cannot run getMore on cursor %d, which was created in session %s, without an lsid", e.id, e.Session)
	case e.Session != nil && *e.Session != *u.Session:
		return mongoerr.New(50801, "Cannot run getMore on cursor %d, which was created in session %s, in session %s", e.id, e.Session, u.Session)
	}
	return nil
}

// Content is what the cursor yields.
func (p *Pinned) Content() Content { return p.entry.content }

// Served notes a batch that was given out.
func (p *Pinned) Served(docs int) {
	p.entry.batches++
	p.entry.docs += int64(docs)
}

// Unpin gives the cursor back. With keep it lives on; else, or when it was killed meanwhile, it is closed and gone, but for the
// reason that its next use is to get.
func (p *Pinned) Unpin(keep bool, now time.Time) error {
	r, e := p.registry, p.entry
	r.mu.Lock()
	e.cancel(nil)
	e.cancel = nil
	e.lastUse = now
	closing := !keep || e.killed
	if closing && !(keep && e.reason != nil) {
		r.forgetLocked(e)
	}
	r.mu.Unlock()
	if closing {
		return e.content.Close()
	}
	return nil
}

// Kill kills one cursor for its owner, whatever session asks, as killCursors does. It reports whether the cursor was there; the error
// is Unauthorized.
func (r *Registry) Kill(u Use) (bool, error) {
	r.mu.Lock()
	e := r.mu.cursors[u.ID]
	if e == nil || e.killed {
		r.mu.Unlock()
		return false, nil
	}
	if e.User != u.User || e.Namespace != u.Namespace {
		r.mu.Unlock()
		return false, mongoerr.New(mongoerr.Unauthorized, "not authorized to kill cursor %d on %s", u.ID, u.Namespace)
	}
	content := r.killLocked(e, nil)
	r.mu.Unlock()
	if content != nil {
		content.Close()
	}
	return true, nil
}

// KillWhere kills the cursors that match and returns their number. With a reason, the next use of each gets that error, once;
// without one it gets CursorNotFound. A cursor in use has its command's context ended and is closed when that command is over.
func (r *Registry) KillWhere(match func(Info) bool, reason *mongoerr.Error) int {
	var contents []Content
	killed := 0
	r.mu.Lock()
	for _, e := range r.mu.cursors {
		if e.killed || !match(e.info()) {
			continue
		}
		killed++
		if c := r.killLocked(e, reason); c != nil {
			contents = append(contents, c)
		}
	}
	r.mu.Unlock()
	for _, c := range contents {
		c.Close()
	}
	return killed
}

// killLocked needs the lock. It returns the content when it is the caller's to close, after unlocking.
func (r *Registry) killLocked(e *entry, reason *mongoerr.Error) Content {
	e.killed, e.reason = true, reason
	r.mu.totals.Killed++
	if reason == nil {
		r.forgetLocked(e)
	}
	if e.cancel == nil {
		return e.content
	}
	cause := reason
	if cause == nil {
		cause = mongoerr.New(mongoerr.CursorKilled, "Cursor was killed")
	}
	e.cancel(cause)
	return nil
}

// forgetLocked takes an entry out of the registry, if it still is there; it needs the lock.
func (r *Registry) forgetLocked(e *entry) {
	if r.mu.cursors[e.id] == e {
		delete(r.mu.cursors, e.id)
		r.memory.Release(memory.Cursors, entryBytes)
	}
}

// KillSessions kills the cursors of sessions.
func (r *Registry) KillSessions(ids ...SessionID) int {
	if len(ids) == 0 {
		return 0
	}
	set := make(map[SessionID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return r.KillWhere(func(i Info) bool { return i.Session != nil && set[*i.Session] }, nil)
}

// Sweep closes the cursors that were idle for the timeout and returns their number.
func (r *Registry) Sweep(now time.Time) int {
	cutoff := now.Add(-r.idle)
	var contents []Content
	n := 0
	r.mu.Lock()
	for _, e := range r.mu.cursors {
		if e.cancel != nil || e.NoTimeout && !e.killed || e.lastUse.After(cutoff) {
			continue
		}
		r.forgetLocked(e)
		if e.killed {
			continue
		}
		n++
		contents = append(contents, e.content)
	}
	r.mu.totals.TimedOut += int64(n)
	r.mu.Unlock()
	for _, c := range contents {
		c.Close()
	}
	return n
}

// Close kills every cursor; Add fails from now on.
func (r *Registry) Close() {
	r.mu.Lock()
	r.mu.closed = true
	r.mu.Unlock()
	r.KillWhere(func(Info) bool { return true }, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.mu.cursors {
		if e.cancel == nil {
			r.forgetLocked(e) // killed before, for a reason that nobody asks for any more
		}
	}
}

// Info is one cursor as it is listed.
type Info struct {
	Options
	ID               int64
	Created, LastUse time.Time
	InUse            bool
	Batches, Docs    int64 // zero while it is in use
}

func (e *entry) info() Info {
	i := Info{Options: e.Options, ID: e.id, Created: e.created, LastUse: e.lastUse, InUse: e.cancel != nil}
	if !i.InUse {
		i.Batches, i.Docs = e.batches, e.docs
	}
	return i
}

// Len is the number of live cursors.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.mu.cursors {
		if !e.killed {
			n++
		}
	}
	return n
}

// Totals returns what the registry counted.
func (r *Registry) Totals() Totals {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.totals
}

// List returns the live cursors in no particular order, and the totals.
func (r *Registry) List() ([]Info, Totals) {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Info, 0, len(r.mu.cursors))
	for _, e := range r.mu.cursors {
		if !e.killed {
			out = append(out, e.info())
		}
	}
	return out, r.mu.totals
}
