package command

import (
	"context"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// guard looks, where the configuration says so, at what a command would read before it begins. What it has found it knows for a while by the command's
// shape, so that a command costs nothing but that shape; what was found to have no index is looked at each time, since it is about to take long.
// Looking is asking the backend to explain the command, and to count from its own figures. A backend that does not answer keeps nobody waiting: the
// command runs.
type guard struct {
	seed     maphash.Seed
	epoch    atomic.Int64 // of what is known; a later one knows nothing of it
	served   [guardSlots]atomic.Pointer[found]
	sizes    [guardSlots]atomic.Pointer[found]
	reported [guardSlots]atomic.Pointer[found]
}

// found is what is known under a key until a time.
type found struct {
	key, epoch int64
	until      time.Time
	documents  int64
}

const (
	guardSlots    = 2048 // shapes and namespaces known at a time
	guardKnows    = time.Minute
	guardPatience = 2 * time.Second // for the backend's answer
	guardReports  = 10 * time.Second
)

func newGuard() *guard { return &guard{seed: maphash.MakeSeed()} }

// forget makes the guard look again, after an index or a collection has gone.
func (g *guard) forget() { g.epoch.Add(1) }

func (g *guard) hash(parts ...[]byte) int64 {
	var h maphash.Hash
	h.SetSeed(g.seed)
	for _, p := range parts {
		h.Write(p)
		h.WriteByte(0)
	}
	return int64(h.Sum64())
}

func (g *guard) known(in *[guardSlots]atomic.Pointer[found], key int64, now time.Time) *found {
	f := in[uint64(key)%guardSlots].Load()
	if f == nil || f.key != key || f.epoch != g.epoch.Load() || !now.Before(f.until) {
		return nil
	}
	return f
}

func (g *guard) note(in *[guardSlots]atomic.Pointer[found], key, epoch, documents int64, until time.Time) {
	in[uint64(key)%guardSlots].Store(&found{key, epoch, until, documents})
}

// Guarding is what became of a command that a guard was to look at.
type Guarding uint8

// A command that no index serves was refused, sent elsewhere or only logged, or its comment allowed it; or its plan could not be had, and it ran.
const (
	GuardRefused Guarding = iota
	GuardSent
	GuardLogged
	GuardAllowed
	GuardUnknown
	guardings
)

// String names it as the metric does.
func (g Guarding) String() string {
	return [...]string{"refused", "sent", "logged", "allowed", "unknown"}[g]
}

// guardedCollection is collection for a command that a guard looks at before it begins.
func (d *Data) guardedCollection(ctx context.Context, req *Request) (view, error) {
	a, err := d.collection(req)
	if err != nil {
		return a, err
	}
	return a, d.guarded(ctx, a, req)
}

// guarded returns an error for a command that must not begin. It may say that a read goes elsewhere.
func (d *Data) guarded(ctx context.Context, a view, req *Request) error {
	cfg, kind := a.snapshot.Config(), guardedAs(req)
	if !cfg.Guards(kind) {
		return nil
	}
	rule := cfg.Guard(a.source.Database, a.source.Name)
	action := rule.Of(kind)
	if !action.Looks() {
		return nil
	}
	for _, s := range scansOf(req) {
		how, documents, err := d.scans(ctx, a, req, &s, rule.Documents)
		switch {
		case ctx.Err() != nil:
			return nil // it has ended, which it is told when it is sent
		case mongoerr.Is(err, mongoerr.MaxTimeMSExpired):
			d.noteUnknown(a, req, err) // the rest would wait as long
			return nil
		case err != nil:
			d.noteUnknown(a, req, err)
			continue
		case how == served:
			continue
		case allowsScan(req.Comment):
			d.table.deps.Counters.Guarded[GuardAllowed].Add(1)
			return nil
		case action.Refuses():
			d.noteGuarded(GuardRefused, a, req, &s, documents)
			return refusedScan(a, req, &s, how, documents, rule.Documents)
		case action.Sends() && !req.explained && req.ReadPreference == nil && !req.InTransaction && levelOf(req.ReadConcern) != "linearizable" && !hasOutput(req):
			d.noteGuarded(GuardSent, a, req, &s, documents)
			req.preference = rule.Preference
		default:
			d.noteGuarded(GuardLogged, a, req, &s, documents)
		}
		return nil
	}
	return nil
}

// guardedAs is the command as which a guard knows a request.
func guardedAs(req *Request) string {
	switch {
	case req.Name != "findAndModify":
		return req.Name
	case truthy(req.Body, "remove"):
		return "delete"
	}
	return "update"
}

// guardedExplain is guarded for a command that is explained in such a way that it runs (https://www.mongodb.com/docs/manual/reference/command/explain/).
// It does not go elsewhere: what is asked for is how the primary does it.
func (d *Data) guardedExplain(ctx context.Context, a view, req, inner *Request, verbosity string) error {
	if verbosity == "queryPlanner" {
		return nil
	}
	looked := &Request{Name: inner.Name, Argument: inner.Argument, Database: req.Database, Body: inner.Body, Sequences: req.Sequences, Conn: req.Conn,
		Arguments: req.Arguments, began: req.began, explained: true}
	if looked.Name == "findandmodify" {
		looked.Name = "findAndModify"
	}
	if comment, ok := bson.Get(inner.Body, "comment"); ok && !allowsScan(looked.Comment) {
		looked.Comment = comment
	}
	return d.guarded(ctx, a, looked)
}

// allowsScan reports whether a comment allows a command to read everything.
func allowsScan(comment bson.Value) bool {
	text, ok := comment.StringValueOK()
	return ok && strings.Contains(text, backend.AllowScan)
}

// refusedScan is the error that a client gets, of the code that a server gives with notablescan
// (https://www.mongodb.com/docs/manual/reference/parameters/#mongodb-parameter-param.notablescan).
func refusedScan(a view, req *Request, s *scan, how reading, documents, limit int64) error {
	wants := "no index would help it: narrow its filter"
	what := "all of"
	if how == walked {
		what, wants = "a whole index over", "only an index whose first field the filter narrows to a range would help it"
	} else if keys := query.WantedIndexes(s.filter, s.order()); keys != nil {
		wants = "make its index: " + query.CreateIndexes(a.source.Database, a.source.Name, keys)
	}
	return mongoerr.New(mongoerr.NoQueryExecutionPlans, "No indexed plans available: %s with %s on %s would read %s %d documents, "+
		"and more than %d are guarded; %s, or allow it with comment: %q", req.Name, s.text(), a.source.Namespace(), what, documents, limit, wants, backend.AllowScan)
}

// noteGuarded counts what became of a command, and logs it, each shape once in a while.
func (d *Data) noteGuarded(what Guarding, a view, req *Request, s *scan, documents int64) {
	d.table.deps.Counters.Guarded[what].Add(1)
	text := s.text()
	key := d.guard.hash([]byte(a.source.Namespace()), []byte(req.Name), []byte(text))
	if !d.mayReport(key, req.began) {
		return
	}
	d.table.deps.Log.Warn("command without an index "+what.String(), "command", req.Name, "namespace", a.source.Namespace(), "documents", documents,
		"shape", text, "connection", req.Conn.ID)
}

func (d *Data) noteUnknown(a view, req *Request, err error) {
	d.table.deps.Counters.Guarded[GuardUnknown].Add(1)
	if !d.mayReport(d.guard.hash([]byte(a.source.Namespace())), req.began) {
		return
	}
	d.table.deps.Log.Warn("cannot look at a guarded command before it runs", "command", req.Name, "namespace", a.source.Namespace(), "error", err)
}

func (d *Data) mayReport(key int64, now time.Time) bool {
	g := d.guard
	if g.known(&g.reported, key, now) != nil {
		return false
	}
	g.note(&g.reported, key, g.epoch.Load(), 0, now.Add(guardReports))
	return true
}
