package catalog

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/config"
	"oxbow/internal/route"
)

// record is what is stored of a collection, in the catalog's collection "collections":
//
//	{_id: "db.coll", created: bool, uuid: UUID, options: {…}, indexes: [{…}], indexing: bool, used: int64, generation: int64, names: string,
//	 timeField, timeUnit, hashField: string, hashCount: int32, making: [{…}], listed: int64, lister: string, change: int64, by: string}
//
// The layout's fields are those that can't change while partitions exist; absent ones mean that the layout lacks that part. Older records lack
// indexing, and what stands behind hashCount.
type record struct {
	namespace  string
	created    bool
	uuid       [16]byte
	options    bson.Document
	indexes    []bson.Document
	indexing   bool  // the list has changed, and perhaps not every partition has followed
	used       int64 // names of partitions that start before this instant may have been used
	generation int64 // the last generation beyond the first one that was given out
	names      string
	layout     route.Layout // fields, unit and count only

	making []route.Partition // to be made: each stands here before it has a document of its own
	listed int64             // the change with which the list of indexes last changed
	lister string            // the gateway that changed it
	change int64             // counts the versions of the stored document; unstored if there is none
	by     string            // the gateway that made the last one
}

// unstored is the change of a record, or a partition, that has no document yet.
const unstored = -1

// newRecord is the record of a collection that was never made.
func newRecord(namespace string) *record {
	return &record{namespace: namespace, used: route.MinTime, generation: 1, change: unstored}
}

// configure takes over what a record keeps of a configuration. When names of partitions to come are formed in another way, they may meet
// those that were used.
func (r *record) configure(c *config.Collection, partitions []route.Partition) {
	if names := namesOf(c); names != r.names {
		if r.names != "" {
			for _, p := range partitions {
				r.used = max(r.used, addMonth(p.End))
			}
		}
		r.names = names
	}
	r.layout = c.Layout
}

// addMonth adds more than the longest cell to an instant.
func addMonth(ms int64) int64 {
	const month = 33 * 24 * 60 * 60 * 1000
	if ms > route.MaxTime-month {
		return route.MaxTime
	}
	return ms + month
}

// namesOf is a text that is equal for two configurations of a collection that name partitions alike.
func namesOf(c *config.Collection) string {
	text := fmt.Sprintf("%s|%d", c.Template, c.As)
	if t := c.Layout.Time; t != nil {
		text += fmt.Sprintf("|%d|%s", t.Every, t.Zone)
	}
	return text
}

// stored is the configuration that a record remembers, as far as config.Collection.Change looks at it.
func (r *record) stored() *config.Collection {
	c := &config.Collection{Layout: r.layout}
	c.Database, c.Name = split(r.namespace)
	return c
}

func (r *record) document() bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "_id", r.namespace)
	dst = bsoncore.AppendBooleanElement(dst, "created", r.created)
	dst = bsoncore.AppendBinaryElement(dst, "uuid", 4, r.uuid[:])
	if r.options != nil {
		dst = bsoncore.AppendDocumentElement(dst, "options", r.options)
	}
	dst = appendDocuments(dst, "indexes", r.indexes)
	dst = bsoncore.AppendBooleanElement(dst, "indexing", r.indexing)
	dst = bsoncore.AppendInt64Element(dst, "used", r.used)
	dst = bsoncore.AppendInt64Element(dst, "generation", r.generation)
	dst = bsoncore.AppendStringElement(dst, "names", r.names)
	if t := r.layout.Time; t != nil {
		dst = bsoncore.AppendStringElement(dst, "timeField", t.Field.String())
		dst = bsoncore.AppendStringElement(dst, "timeUnit", t.Unit.String())
	}
	if h := r.layout.Hash; h != nil {
		dst = bsoncore.AppendStringElement(dst, "hashField", h.Field.String())
		dst = bsoncore.AppendInt32Element(dst, "hashCount", int32(h.Count))
	}
	making := make([]bson.Document, len(r.making))
	for i, p := range r.making {
		making[i] = partitionDocument(r.namespace, p)
	}
	dst = appendDocuments(dst, "making", making)
	dst = bsoncore.AppendInt64Element(dst, "listed", r.listed)
	dst = bsoncore.AppendStringElement(dst, "lister", r.lister)
	dst = bsoncore.AppendInt64Element(dst, "change", r.change)
	dst = bsoncore.AppendStringElement(dst, "by", r.by)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func parseRecord(doc bson.Document) (*record, error) {
	f := fields{doc: doc}
	r := &record{
		namespace:  f.text("_id"),
		created:    f.boolean("created"),
		used:       f.whole("used"),
		generation: f.whole("generation"),
		names:      f.text("names"),
	}
	if f.has("indexing") {
		r.indexing = f.boolean("indexing")
	}
	if f.has("change") {
		r.change, r.by, r.listed, r.lister = f.whole("change"), f.text("by"), f.whole("listed"), f.text("lister")
	}
	if err := r.parseMaking(doc); err != nil {
		return nil, err
	}
	uuid, _ := bson.Get(doc, "uuid")
	if _, data, ok := uuid.BinaryOK(); ok {
		copy(r.uuid[:], data)
	}
	if options, ok := bson.Get(doc, "options"); ok {
		r.options = options.Data
	}
	if indexes, ok := bson.Get(doc, "indexes"); ok {
		it := bson.Elements(indexes.Data)
		for it.Next() {
			r.indexes = append(r.indexes, it.Value().Data)
		}
	}
	if f.has("timeField") {
		unit, ok := unitNamed(f.text("timeUnit"))
		if !ok {
			return nil, fmt.Errorf("the catalog's record of %s has an unknown unit", r.namespace)
		}
		r.layout.Time = &route.Time{Field: bson.ParsePath(f.text("timeField")), Unit: unit}
	}
	if f.has("hashField") {
		r.layout.Hash = &route.Hash{Field: bson.ParsePath(f.text("hashField")), Count: int(f.whole("hashCount"))}
	}
	if f.missing != "" {
		return nil, fmt.Errorf("the catalog's record of %q lacks %s", r.namespace, f.missing)
	}
	return r, nil
}

func (r *record) parseMaking(doc bson.Document) error {
	making, _ := bson.Get(doc, "making")
	for it := bson.Elements(making.Data); making.Data != nil && it.Next(); {
		_, p, err := parsePartition(it.Value().Data)
		if err != nil {
			return err
		}
		p.Change = unstored
		r.making = append(r.making, p)
	}
	return nil
}

func unitNamed(name string) (route.Unit, bool) {
	for _, u := range []route.Unit{route.Date, route.Seconds, route.Milliseconds, route.ObjectID} {
		if u.String() == name {
			return u, true
		}
	}
	return 0, false
}

// The catalog's collection "partitions" has a document for each partition of every state:
//
//	{_id: "backend/database.collection", ns, backend, database, collection: string, slot: int32, start, end: int64 (ms),
//	 generation: int64, state: string, since: int64 (ms), restored: bool, change: int64, by, was: string}
//
// was is the state before. Older ones lack change, by and was.

func partitionID(p route.Partition) string { return p.Backend + "/" + p.Name() }

func partitionDocument(namespace string, p route.Partition) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "_id", partitionID(p))
	dst = bsoncore.AppendStringElement(dst, "ns", namespace)
	dst = bsoncore.AppendStringElement(dst, "backend", p.Backend)
	dst = bsoncore.AppendStringElement(dst, "database", p.Database)
	dst = bsoncore.AppendStringElement(dst, "collection", p.Collection)
	dst = bsoncore.AppendInt32Element(dst, "slot", int32(p.Slot))
	dst = bsoncore.AppendInt64Element(dst, "start", p.Start)
	dst = bsoncore.AppendInt64Element(dst, "end", p.End)
	dst = bsoncore.AppendInt64Element(dst, "generation", int64(p.Generation))
	dst = bsoncore.AppendStringElement(dst, "state", p.State.String())
	dst = bsoncore.AppendInt64Element(dst, "since", p.Since)
	dst = bsoncore.AppendBooleanElement(dst, "restored", p.Restored)
	dst = bsoncore.AppendInt64Element(dst, "change", p.Change)
	dst = bsoncore.AppendStringElement(dst, "by", p.By)
	dst = bsoncore.AppendStringElement(dst, "was", p.Was.String())
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func parsePartition(doc bson.Document) (namespace string, p route.Partition, err error) {
	f := fields{doc: doc}
	p = route.Partition{
		Backend:    f.text("backend"),
		Database:   f.text("database"),
		Collection: f.text("collection"),
		Slot:       int(f.whole("slot")),
		Start:      f.whole("start"),
		End:        f.whole("end"),
		Generation: int(f.whole("generation")),
		Since:      f.whole("since"),
		Restored:   f.boolean("restored"),
	}
	if f.has("change") {
		p.Change, p.By, p.Was = f.whole("change"), f.text("by"), f.state("was")
	}
	namespace, p.State = f.text("ns"), f.state("state")
	if f.missing != "" {
		return "", p, fmt.Errorf("the catalog's record of partition %s of %q lacks %s, or does not say what it is", p.Name(), namespace, f.missing)
	}
	return namespace, p, nil
}

// fields reads a record and remembers what is missing.
type fields struct {
	doc     bson.Document
	missing string
}

func (f *fields) has(key string) bool {
	_, ok := bson.Get(f.doc, key)
	return ok
}

func (f *fields) text(key string) string  { return field(f, key, bson.Value.StringValueOK) }
func (f *fields) whole(key string) int64  { return field(f, key, bson.Value.AsInt64OK) }
func (f *fields) boolean(key string) bool { return field(f, key, bson.Value.BooleanOK) }

// state reads a partition's state.
func (f *fields) state(key string) route.State {
	text := f.text(key)
	for _, s := range route.States() {
		if s.String() == text {
			return s
		}
	}
	f.missing = key
	return 0
}

func field[T any](f *fields, key string, as func(bson.Value) (T, bool)) T {
	v, _ := bson.Get(f.doc, key)
	value, ok := as(v)
	if !ok {
		f.missing = key
	}
	return value
}
