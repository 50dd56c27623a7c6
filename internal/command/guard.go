package command

import (
	"context"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/exec"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
	"oxbow/internal/query"
	"oxbow/internal/statement"
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

// scan is a command, or a statement of one, that may read a collection as a whole.
type scan struct {
	filter, sort bson.Document
	distinct     string        // the field whose values are asked for; "": documents are
	statement    bson.Document // of a write; nil: the command as a whole
}

// reading is how a command would be run.
type reading uint8

const (
	served     reading = iota // by an index that narrows it, or on few documents
	collection                // all documents are read
	walked                    // an index is read as a whole, and filtered
)

// scansOf returns what of a command may read a whole collection and could be served by an index. What has neither a filter nor a sort reads all that there
// is because it was told to, as MongoDB's own parameter notablescan takes it too.
func scansOf(req *Request) []scan {
	var all []scan
	add := func(s scan) {
		of := req.Body
		if s.statement != nil {
			of = s.statement
		}
		byID := asksForID(s.filter) && !choosesIndex(of)
		if len(s.filter) > len(emptyDocument) && !byID || len(s.sort) > len(emptyDocument) || s.distinct != "" && !byID {
			all = append(all, s)
		}
	}
	switch req.Name {
	case "find":
		if !truthy(req.Body, "tailable") {
			add(scan{filter: documentOf(req.Body, "filter"), sort: documentOf(req.Body, "sort")})
		}
	case "count":
		add(scan{filter: documentOf(req.Body, "query")})
	case "distinct":
		key, _ := bson.Get(req.Body, "key")
		field, _ := key.StringValueOK()
		add(scan{filter: documentOf(req.Body, "query"), distinct: field})
	case "findAndModify":
		add(scan{filter: documentOf(req.Body, "query"), sort: documentOf(req.Body, "sort")})
	case "aggregate":
		if !truthy(req.Body, "explain") {
			add(headOf(req.Body))
		}
	case "delete":
		req.eachStatement("deletes", func(s bson.Document) {
			if limit, _ := bson.Get(s, "limit"); isZero(limit) {
				add(scan{filter: documentOf(s, "q"), statement: s})
			}
		})
	case "update":
		req.eachStatement("updates", func(s bson.Document) {
			if truthy(s, "multi") {
				add(scan{filter: documentOf(s, "q"), statement: s})
			}
		})
	}
	return all
}

// headOf returns what a pipeline matches and sorts by before anything else.
func headOf(body bson.Document) scan {
	var s scan
	pipeline, _ := bson.Get(body, "pipeline")
	if pipeline.Type != bson.TypeArray {
		return s
	}
	it := bson.Elements(pipeline.Data)
	for it.Next() {
		stage, argument, _ := bson.First(it.Value().Data)
		switch {
		case stage == "$match" && s.filter == nil && s.sort == nil:
			s.filter, _ = argument.DocumentOK()
		case stage == "$sort" && s.sort == nil:
			s.sort, _ = argument.DocumentOK()
		default:
			return s
		}
	}
	return s
}

// asksForID reports whether a filter names documents by their _id, which every collection has an index on.
func asksForID(filter bson.Document) bool {
	id, ok := bson.Get(filter, "_id")
	if !ok {
		return false
	}
	operators, isDocument := id.DocumentOK()
	if !isDocument {
		return id.Type != bson.TypeRegex
	}
	first, _, _ := bson.First(operators)
	return !strings.HasPrefix(first, "$") || first == "$eq" || first == "$in"
}

// choosesIndex reports whether a command names the index that serves it, or a collation, which the index on _id may not have.
func choosesIndex(command bson.Document) bool {
	_, hinted := bson.Get(command, "hint")
	_, collated := bson.Get(command, "collation")
	return hinted || collated
}

// dependsOnValue reports whether filters of one shape may differ in what an index is worth to them: with a regular expression, by its prefix, and $exists.
func dependsOnValue(filter bson.Document) bool {
	for it := bson.Elements(filter); len(filter) > 0 && it.Next(); {
		v, key := it.Value(), string(it.Key())
		if v.Type == bson.TypeRegex || key == "$regex" || key == "$exists" ||
			(v.Type == bson.TypeDocument || v.Type == bson.TypeArray) && dependsOnValue(v.Data) {
			return true
		}
	}
	return false
}

func documentOf(doc bson.Document, key string) bson.Document {
	v, _ := bson.Get(doc, key)
	sub, _ := v.DocumentOK()
	return sub
}

func isZero(v bson.Value) bool {
	n, ok := bson.NumberOf(v)
	return ok && n.IsZero()
}

// scans reports whether and how what a command asks would read more documents than a limit for want of an index, and how many.
func (d *Data) scans(ctx context.Context, a view, req *Request, s *scan, limit int64) (reading, int64, error) {
	g, now := d.guard, req.began
	namespace := a.source.Namespace()
	size := g.hash([]byte(namespace))
	f := g.known(&g.sizes, size, now)
	if f != nil && f.documents <= limit {
		return served, 0, nil
	}
	var room [512]byte
	shape := query.AppendShape(query.AppendShape(room[:0], s.filter), s.sort)
	key := g.hash([]byte(namespace), []byte(req.Name), shape, []byte(s.distinct), optionsOf(req, s))
	if g.known(&g.served, key, now) != nil {
		return served, 0, nil
	}
	ctx, cancel := context.WithTimeout(exec.WithExchange(ctx, &exec.Exchange{}), guardPatience)
	defer cancel()
	epoch := g.epoch.Load()
	if f == nil {
		n, err := d.documents(ctx, a, nil)
		if err != nil {
			return served, 0, err
		}
		g.note(&g.sizes, size, epoch, n, now.Add(guardKnows))
		if n <= limit {
			return served, 0, nil
		}
	}
	targets, how, err := d.explainsScan(ctx, a, req, s)
	if err != nil {
		return served, 0, err
	}
	if how == served {
		if !dependsOnValue(s.filter) {
			g.note(&g.served, key, epoch, 0, now.Add(guardKnows))
		}
		return served, 0, nil
	}
	n, err := d.documents(ctx, a, targets)
	if n <= limit {
		how = served
	}
	return how, n, err
}

// optionsOf are the bytes of what else decides which index serves a command.
func optionsOf(req *Request, s *scan) []byte {
	from := req.Body
	if s.statement != nil {
		from = s.statement
	}
	var dst []byte
	for _, name := range [...]string{"hint", "collation", "min", "max"} {
		if v, ok := bson.Get(from, name); ok {
			dst = bsoncore.AppendValueElement(dst, name, v)
		}
	}
	return dst
}

// documents counts the documents of a plain collection, or of partitions of a layout, all where none are named, from the backends' own figures.
func (d *Data) documents(ctx context.Context, a view, targets []plan.Target) (int64, error) {
	p, err := plan.NewCount(&statement.Count{}, a.source, d.env())
	if err != nil {
		return 0, err
	}
	if targets != nil {
		p.Routed.Targets = targets
	}
	return d.Exec.Count(ctx, p)
}

// explainsScan asks how a statement would be run, and reports whether it reads the collection or an index as a whole; and of which partitions. All partitions of a layout have the same
// indexes: one that is there tells for all.
func (d *Data) explainsScan(ctx context.Context, a view, req *Request, s *scan) ([]plan.Target, reading, error) {
	inner := explainable(req, s)
	if a.source.Collection == nil {
		reply, err := d.Exec.Run(ctx, a.source.Backend, &backend.Request{Body: explainOf(inner.Body, a.source.Database)})
		if err == nil {
			err = backend.Check(reply)
		}
		if err != nil {
			return nil, served, err
		}
		return nil, s.readingOf(reply), nil
	}
	p, err := d.planExplain(a, inner)
	if err != nil {
		return nil, served, err
	}
	all := p.Routed.Targets
	for i := range all {
		one := *p
		one.Routed.Targets = all[i : i+1]
		parts, err := d.Exec.Explain(ctx, &one, "queryPlanner")
		if err != nil {
			return nil, served, err
		}
		if !backend.PlansNothing(parts[0]) {
			return all, s.readingOf(parts[0]), nil
		}
	}
	return all, served, nil
}

// readingOf tells from an explain's reply how a statement would be run. An index that is walked for its order serves the sort.
func (s *scan) readingOf(explained bson.Document) reading {
	switch {
	case backend.ScansCollection(explained):
		return collection
	case len(s.filter) > len(emptyDocument) && len(s.sort) <= len(emptyDocument) && backend.WalksIndex(explained):
		return walked
	}
	return served
}

// explainable is the command with one statement of it, and without what is the client's alone.
func explainable(req *Request, s *scan) *Request {
	at, dst := bsoncore.AppendDocumentStart(nil)
	it := bson.Elements(req.Body)
	for it.Next() {
		key := string(it.Key())
		if generic[key] || s.statement != nil && (key == "deletes" || key == "updates") {
			continue
		}
		dst = append(dst, it.Raw()...)
	}
	if s.statement != nil {
		dst = bsoncore.AppendArrayElement(dst, req.Name+"s", bsoncore.NewArrayBuilder().AppendDocument(s.statement).Build())
	}
	dst = bsoncore.AppendStringElement(dst, "$db", req.Database)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return &Request{Name: req.Name, Argument: req.Argument, Database: req.Database, Body: dst}
}

func explainOf(command bson.Document, database string) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendDocumentElement(dst, "explain", command)
	dst = bsoncore.AppendStringElement(dst, "verbosity", "queryPlanner")
	dst = bsoncore.AppendStringElement(dst, "$db", database)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// refusedScan is the error that a client gets, of the code that a server gives with notablescan
// (https://www.mongodb.com/docs/manual/reference/parameters/#mongodb-parameter-param.notablescan).
func refusedScan(a view, req *Request, s *scan, how reading, documents, limit int64) error {
	wants := "no index would help it"
	what := "all of"
	if how == walked {
		what, wants = "a whole index over", "only an index whose first field the filter narrows to a range would help it"
	} else if keys := query.WantedIndexes(s.filter, s.order()); keys != nil {
		wants = "make its index: " + query.CreateIndexes(a.source.Database, a.source.Name, keys)
	}
	return mongoerr.New(mongoerr.NoQueryExecutionPlans, "No indexed plans available: %s with %s on %s would read %s %d documents, "+
		"and more than %d are guarded; %s, or allow it with comment: %q", req.Name, s.text(), a.source.Namespace(), what, documents, limit, wants, backend.AllowScan)
}

// order is what the keys of an index are to give in order: those that are sorted by, or whose values are asked for.
func (s *scan) order() bson.Document {
	if s.distinct == "" {
		return s.sort
	}
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst, _ = bsoncore.AppendDocumentEnd(bsoncore.AppendInt32Element(dst, s.distinct, 1), at)
	return dst
}

// text is the shape of what is asked.
func (s *scan) text() string {
	text := query.AppendShape(nil, s.filter)
	if s.distinct != "" {
		text = append(append(text, " for the values of "...), s.distinct...)
	}
	if len(s.sort) > len(emptyDocument) {
		text = append(append(text, " sorted by "...), bson.Value{Type: bson.TypeDocument, Data: s.sort}.String()...)
	}
	return string(text)
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
