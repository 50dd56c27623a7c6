package command

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/exec"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
	"oxbow/internal/route"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Upkeep is what the operator's commands need of retention's runner.
type Upkeep interface {
	// Stopped returns why retention has stopped for a collection, or "".
	Stopped(ns string) string
	// Confirm lets it go on past that reason, which it returns.
	Confirm(ns string) string
	// History returns the latest of what it did to a collection's partitions, oldest first.
	History(ns string) []UpkeepEvent
}

// UpkeepEvent is one thing that retention did to a partition, or why it stopped.
type UpkeepEvent struct {
	At        time.Time // when it had been done
	Partition string    // physical namespace, or ""
	Action    string    // made, hidden, dropped, stopped, failed
	Reason    string
	Took      time.Duration // of work
	Err       error
}

// RegisterPartitions puts the operator's commands on partitions into the table. They are Oxbow's own; the command line speaks through them.
func (t *Table) RegisterPartitions(d *Data) {
	t.Register("listPartitions", Entry{Handler: d.listPartitions, Fields: []string{"cursor", "stats"}, Help: "the partitions of a collection"})
	t.Register("createPartitions", Entry{Handler: d.createPartitions, Writes: true, Fields: []string{"from", "to"}, Help: "makes partitions for a range of time"})
	t.Register("hidePartition", Entry{Handler: d.hidePartition, Writes: true, Fields: []string{"partition"}, Help: "takes a partition out of routing; undo brings it back until it is dropped"})
	t.Register("undoPartition", Entry{Handler: d.undoPartition, Writes: true, Fields: []string{"partition"}, Help: "brings a hidden partition back"})
	t.Register("dropPartition", Entry{Handler: d.dropPartition, Writes: true, Fields: []string{"partition"}, Help: "drops a partition for good"})
	t.Register("confirmRetention", Entry{Handler: d.confirmRetention, Writes: true, Fields: none, Help: "lets a collection's retention go on past what stopped it"})
	t.Register("upkeepHistory", Entry{Handler: d.upkeepHistory, Fields: []string{"since"}, Help: "what retention did to a collection's partitions lately, and why"})
}

// laidOut finds the collection that a command names, which must have a layout.
func (d *Data) laidOut(req *Request) (view, error) {
	a, err := d.collection(req)
	if err == nil && a.source.Collection == nil {
		err = mongoerr.New(mongoerr.NamespaceNotFound, "%s has no layout", a.source.Namespace())
	}
	return a, err
}

// listPartitions answers listPartitions: every partition in whatever state, oldest first, with its figures when stats is set.
func (d *Data) listPartitions(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.laidOut(req)
	if err != nil {
		return err
	}
	all := slices.Clone(a.source.Collection.All)
	slices.SortFunc(all, func(x, y route.Partition) int {
		return cmp.Or(cmp.Compare(x.Start, y.Start), cmp.Compare(x.Slot, y.Slot), cmp.Compare(x.Generation, y.Generation))
	})
	table := &a.source.Collection.Table
	stats := truthy(req.Body, "stats")
	docs := make([]bson.Document, len(all))
	for i := range all {
		var figures bson.Document
		if stats && all[i].State != route.Creating && all[i].State != route.Dropping {
			if figures, err = d.partitionStats(ctx, a.source.Namespace(), &all[i]); err != nil {
				return err
			}
		}
		docs[i] = partitionDocument(table, &all[i], figures)
	}
	return d.firstBatch(ctx, req, reply, a.source.Namespace(), exec.Slice(docs), batch{size: -1})
}

func (d *Data) partitionStats(ctx context.Context, ns string, p *route.Partition) (bson.Document, error) {
	t := plan.PartitionTarget(ns, p)
	replies, err := d.Exec.Gather(ctx, []plan.Target{t}, plan.Command{Name: "collStats"})
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

// partitionDocument is a partition of a table as listPartitions shows it.
func partitionDocument(table *route.Table, p *route.Partition, figures bson.Document) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "name", p.Name())
	dst = bsoncore.AppendStringElement(dst, "backend", p.Backend)
	dst = bsoncore.AppendStringElement(dst, "state", p.State.String())
	dst = bsoncore.AppendDateTimeElement(dst, "since", p.Since)
	if p.Start != route.MinTime {
		dst = bsoncore.AppendStringElement(dst, "field", table.Layout.Time.Field.String())
		dst = bsoncore.AppendDateTimeElement(dst, "start", p.Start)
		dst = bsoncore.AppendDateTimeElement(dst, "end", p.End)
	}
	if p.Slot >= 0 {
		dst = bsoncore.AppendInt32Element(dst, "slot", int32(p.Slot))
	}
	dst = bsoncore.AppendInt32Element(dst, "generation", int32(p.Generation))
	for _, name := range []string{"count", "size", "storageSize", "totalIndexSize"} {
		if v, ok := bson.Get(figures, name); ok {
			dst = bsoncore.AppendValueElement(dst, name, v)
		}
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// maxMade bounds how many ranges one createPartitions makes.
const maxMade = 10_000

// createPartitions answers createPartitions: all ranges that touch [from, to).
func (d *Data) createPartitions(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.laidOut(req)
	if err != nil {
		return err
	}
	table := &a.source.Collection.Table
	places, err := placesAsked(a.source.Namespace(), table, req)
	if err != nil {
		return err
	}
	before := len(table.Partitions)
	s, err := d.Catalog.Ensure(ctx, a.source.Namespace(), places)
	if err != nil {
		return err
	}
	made := 0
	if c := s.Collection(a.source.Namespace()); c != nil {
		made = len(c.Table.Partitions) - before
	}
	reply.Elements = bsoncore.AppendInt32Element(reply.Elements, "made", int32(max(0, made)))
	return nil
}

// placesAsked are the places of the ranges that createPartitions asks for; without a time layout there is one, and no bound to give.
func placesAsked(ns string, table *route.Table, req *Request) ([]route.Place, error) {
	if table.Layout.Time != nil {
		return placesBetween(table, req)
	}
	for _, name := range []string{"from", "to"} {
		if _, there := bson.Get(req.Body, name); there {
			return nil, mongoerr.New(mongoerr.BadValue, "%s is not split by time, so '%s' says nothing: without it all slots are made", ns, name)
		}
	}
	return []route.Place{table.At(-1, 0)}, nil
}

func placesBetween(table *route.Table, req *Request) ([]route.Place, error) {
	var bounds [2]int64
	for i, name := range []string{"from", "to"} {
		v, there := bson.Get(req.Body, name)
		if !there {
			return nil, missing(req.Name + "." + name)
		}
		ms, ok := v.DateTimeOK()
		if !ok {
			return nil, wrongType(req.Name+"."+name, v.Type, "date")
		}
		if ms < 0 || ms >= lastInstant {
			return nil, mongoerr.New(mongoerr.BadValue, "'%s' must lie between 1970 and 9999", name)
		}
		bounds[i] = ms
	}
	if bounds[0] >= bounds[1] {
		return nil, mongoerr.New(mongoerr.BadValue, "'from' must lie before 'to'")
	}
	var places []route.Place
	for ms := bounds[0]; ms < bounds[1]; {
		p := table.At(-1, ms)
		places = append(places, p)
		if len(places) > maxMade {
			return nil, mongoerr.New(mongoerr.BadValue, "more than %d ranges lie between 'from' and 'to'", maxMade)
		}
		ms = p.End
	}
	return places, nil
}

// lastInstant is the end of the year 9999 in milliseconds since 1970.
var lastInstant = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// onPartition runs one of the catalog's operations on the partition that the command names.
func (d *Data) onPartition(ctx context.Context, req *Request, do func(ctx context.Context, ns, name string) error) error {
	a, err := d.laidOut(req)
	if err != nil {
		return err
	}
	v, there := bson.Get(req.Body, "partition")
	if !there {
		return missing(req.Name + ".partition")
	}
	name, ok := v.StringValueOK()
	if !ok {
		return wrongType(req.Name+".partition", v.Type, "string")
	}
	return do(ctx, a.source.Namespace(), name)
}

func (d *Data) hidePartition(ctx context.Context, req *Request, _ *Reply) error {
	return d.onPartition(ctx, req, d.Catalog.Hide)
}

func (d *Data) undoPartition(ctx context.Context, req *Request, _ *Reply) error {
	return d.onPartition(ctx, req, d.Catalog.Undo)
}

func (d *Data) dropPartition(ctx context.Context, req *Request, _ *Reply) error {
	return d.onPartition(ctx, req, d.Catalog.DropPartition)
}

// confirmRetention answers confirmRetention, with the reason that is now set aside.
func (d *Data) confirmRetention(_ context.Context, req *Request, reply *Reply) error {
	a, err := d.laidOut(req)
	if err != nil {
		return err
	}
	reply.Elements = bsoncore.AppendStringElement(reply.Elements, "confirmed", d.Upkeep.Confirm(a.source.Namespace()))
	return nil
}

// upkeepHistory answers upkeepHistory: the events at or after since, oldest first, and under stopped why retention has stopped, if it has.
func (d *Data) upkeepHistory(_ context.Context, req *Request, reply *Reply) error {
	a, err := d.laidOut(req)
	if err != nil {
		return err
	}
	since := int64(math.MinInt64)
	if v, there := bson.Get(req.Body, "since"); there {
		ok := false
		if since, ok = v.DateTimeOK(); !ok {
			return wrongType(req.Name+".since", v.Type, "date")
		}
	}
	var docs []bson.Document
	for _, e := range d.Upkeep.History(a.source.Namespace()) {
		if e.At.UnixMilli() >= since {
			docs = append(docs, eventDocument(&e))
		}
	}
	reply.Elements = appendDocuments(reply.Elements, "events", docs)
	if reason := d.Upkeep.Stopped(a.source.Namespace()); reason != "" {
		reply.Elements = bsoncore.AppendStringElement(reply.Elements, "stopped", reason)
	}
	return nil
}

// eventDocument is an event as upkeepHistory shows it.
func eventDocument(e *UpkeepEvent) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendDateTimeElement(dst, "at", e.At.UnixMilli())
	if e.Partition != "" {
		dst = bsoncore.AppendStringElement(dst, "partition", e.Partition)
	}
	dst = bsoncore.AppendStringElement(dst, "action", e.Action)
	dst = bsoncore.AppendStringElement(dst, "reason", e.Reason)
	dst = bsoncore.AppendInt64Element(dst, "micros", e.Took.Microseconds())
	if e.Err != nil {
		dst = bsoncore.AppendStringElement(dst, "error", e.Err.Error())
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
