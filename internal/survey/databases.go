package survey

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/operation"
)

// databases looks at the databases of clients, and at their collections one after the other.
func (g *gathering) databases(ctx context.Context) {
	reply, err := g.reads.ask(ctx, "admin", func(dst []byte) []byte {
		return bsoncore.AppendBooleanElement(bsoncore.AppendInt32Element(dst, "listDatabases", 1), "nameOnly", true)
	})
	if err != nil {
		g.missing("databases", err)
		return
	}
	list, _ := bson.Get(reply, "databases")
	var names []string
	for it := bson.Elements(list.Data); list.Type == bson.TypeArray && it.Next(); {
		if name := text(it.Value().Data, "name"); name != "admin" && name != "config" && name != "local" && name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	tops := g.tops(ctx)
	for _, database := range names {
		if ctx.Err() != nil {
			return
		}
		g.survey.Databases++
		g.database(ctx, database, tops)
	}
}

// wanted reports whether a namespace is one of those that are asked for.
func (g *gathering) wanted(database, collection string) bool {
	return g.o.Namespaces == nil || slices.Contains(g.o.Namespaces, database+"."+collection) || slices.Contains(g.o.Namespaces, database+".*")
}

func (g *gathering) database(ctx context.Context, database string, tops map[string]int64) {
	docs, err := g.reads.documents(ctx, database, "$cmd.listCollections", 1_000_000, func(dst []byte) []byte {
		dst = bsoncore.AppendInt32Element(dst, "listCollections", 1)
		return bsoncore.BuildDocumentElement(dst, "cursor", bsoncore.AppendInt32Element(nil, "batchSize", 1000))
	})
	if err != nil {
		g.missing("collections of "+database, err)
		return
	}
	var names []string
	profiled := false
	for _, doc := range docs {
		name, kind := text(doc, "name"), text(doc, "type")
		profiled = profiled || name == "system.profile"
		if (kind == "" || kind == "collection") && !strings.HasPrefix(name, "system.") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	g.survey.Count += len(names)
	for _, name := range names {
		if !g.wanted(database, name) {
			continue
		}
		if len(g.survey.Collections) == g.o.Collections {
			g.survey.Missing = append(g.survey.Missing, "collections from "+database+"."+name+" on: only so many are looked at, see --collections")
			break
		}
		if ctx.Err() != nil {
			return
		}
		g.collection(ctx, database, name, tops)
	}
	if profiled {
		g.profile(ctx, database)
	}
}

// tops returns how many updates and deletes each collection has had since the start of the server that holds the most recent data, where that counts them
// (https://www.mongodb.com/docs/manual/reference/command/top/).
func (g *gathering) tops(ctx context.Context) map[string]int64 {
	counts := map[string]int64{}
	for _, m := range g.survey.Members {
		r, ok := g.by[m.Host]
		if !ok || m.State == "secondary" {
			continue
		}
		reply, err := r.simple(ctx, "admin", "top")
		if err != nil {
			continue // a router has none
		}
		totals, _ := bson.Get(reply, "totals")
		for it := bson.Elements(totals.Data); totals.Type == bson.TypeDocument && it.Next(); {
			if doc, ok := it.Value().DocumentOK(); ok {
				counts[string(it.Key())] += figure(doc, "update", "count").Value + figure(doc, "remove", "count").Value
			}
		}
	}
	return counts
}

func (g *gathering) count(ctx context.Context, database, collection string) (Figure, error) {
	reply, err := g.reads.ask(ctx, database, func(dst []byte) []byte { return bsoncore.AppendStringElement(dst, "count", collection) })
	if err != nil {
		return Figure{}, err
	}
	return figure(reply, "n"), nil
}

// collection looks at one collection.
func (g *gathering) collection(ctx context.Context, database, name string, tops map[string]int64) {
	c := Collection{Namespace: database + "." + name}
	g.o.Progress(c.Namespace)
	stats, err := g.reads.ask(ctx, database, func(dst []byte) []byte { return bsoncore.AppendStringElement(dst, "collStats", name) })
	if err != nil {
		g.missing("figures of "+c.Namespace, err)
		return
	}
	c.read(stats)
	if !c.Changed.Reported {
		if n, ok := tops[c.Namespace]; ok {
			c.Changed = Known(n)
		}
	}
	if c.Changed.Reported {
		c.ChangedSeconds = g.uptime()
	}
	g.indexes(ctx, database, name, &c, stats)
	g.survey.IndexCount += len(c.Indexes)
	if c.Documents.Value > 0 && !c.Capped {
		g.look(ctx, database, name, &c)
		g.backlog(ctx, database, name, &c)
	}
	g.counts[c.Namespace] = c.Documents.Value >= countedAgain
	g.survey.Collections = append(g.survey.Collections, c)
	g.survey.store(stats)
	select {
	case <-ctx.Done():
	case <-time.After(g.o.Pace):
	}
}

// store adds what a collection takes on disk to the servers that store it. A router tells it by shard, whose name is mostly that of its replica set; shards of other names
// are taken to have as much each (https://www.mongodb.com/docs/manual/reference/command/collStats/#mongodb-data-collStats.shards).
func (s *Survey) store(stats bson.Document) {
	onDisk := func(stats bson.Document) int64 {
		return figure(stats, "storageSize").Value + figure(stats, "totalIndexSize").Value
	}
	v, _ := bson.Get(stats, "shards")
	shards, sharded := v.DocumentOK()
	named, n := false, int64(0)
	for it := bson.Elements(shards); sharded && it.Next(); n++ {
		named = named || slices.ContainsFunc(s.Servers, func(server Server) bool { return server.Set == string(it.Key()) })
	}
	for i := range s.Servers {
		server := &s.Servers[i]
		if !named {
			server.DataBytes += onDisk(stats) / max(1, n)
			continue
		}
		part, _ := bson.Get(shards, server.Set)
		if doc, ok := part.DocumentOK(); ok {
			server.DataBytes += onDisk(doc)
		}
	}
}

// countedAgain is how many documents make it worth counting them twice.
const countedAgain = 1000

// uptime is that of the server that counts changes: the one that is read from, else the first.
func (g *gathering) uptime() Figure {
	for _, s := range g.survey.Servers {
		if s.Host == g.reads.host || g.reads.host == "" {
			return s.UptimeSeconds
		}
	}
	return Figure{}
}

// read takes what collStats reports. Of WiredTiger's figures those of the file are in bytes, those of cursors count since the server's start
// (https://www.mongodb.com/docs/manual/reference/command/collStats/#mongodb-data-collStats.wiredTiger).
func (c *Collection) read(stats bson.Document) {
	c.Documents, c.DataBytes, c.StorageBytes = figure(stats, "count"), figure(stats, "size"), figure(stats, "storageSize")
	c.IndexBytes, c.Capped = figure(stats, "totalIndexSize"), isTrue(stats, "capped")
	engine, hasEngine := at(stats, "wiredTiger")
	if wt, ok := engine.DocumentOK(); hasEngine && ok {
		c.draws = true
		c.ReusableBytes = figure(wt, "block-manager", "file bytes available for reuse")
		removed, updated, modified := figure(wt, "cursor", "remove calls"), figure(wt, "cursor", "update calls"), figure(wt, "cursor", "modify calls")
		if removed.Reported && updated.Reported {
			c.Changed = Known(removed.Value + updated.Value + modified.Value)
		}
	}
	// The embedded engine says 0 here, which it means: it has no holes.
	if !c.ReusableBytes.Reported {
		c.ReusableBytes = figure(stats, "freeStorageSize")
	}
}

func isTrue(doc bson.Document, path ...string) bool {
	v, ok := at(doc, path...)
	b, isBool := v.BooleanOK()
	return ok && isBool && b
}

// indexes lists a collection's indexes with their sizes and uses.
func (g *gathering) indexes(ctx context.Context, database, name string, c *Collection, stats bson.Document) {
	specs, err := g.reads.documents(ctx, database, name, 1000, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "listIndexes", name)
		return bsoncore.BuildDocumentElement(dst, "cursor", nil)
	})
	if err != nil {
		g.missing("indexes of "+c.Namespace, err)
		return
	}
	uses := map[string]Figure{}
	stage := bsoncore.BuildDocument(nil, bsoncore.BuildDocumentElement(nil, "$indexStats", nil))
	if docs, err := g.reads.aggregate(ctx, database, name, stage, 1000); err == nil {
		for _, doc := range docs {
			n := figure(doc, "accesses", "ops")
			n.Value += uses[text(doc, "name")].Value // of several shards
			uses[text(doc, "name")] = n
		}
	}
	for _, spec := range specs {
		x := Index{Name: text(spec, "name"), Unique: isTrue(spec, "unique"), ExpireSeconds: figure(spec, "expireAfterSeconds")}
		x.Bytes, x.Uses = figure(stats, "indexSizes", x.Name), uses[x.Name]
		key, _ := bson.Get(spec, "key")
		x.Key = key.String()
		if doc, ok := key.DocumentOK(); ok {
			it := bson.Elements(doc)
			for n := 0; it.Next(); n++ {
				if x.field = string(it.Key()); n > 0 {
					x.field = ""
				}
			}
		}
		c.Indexes = append(c.Indexes, x)
	}
}

// backlog looks for the oldest document of a TTL index that should have gone.
func (g *gathering) backlog(ctx context.Context, database, name string, c *Collection) {
	for i := range c.Indexes {
		x := &c.Indexes[i]
		if !x.ExpireSeconds.Reported || x.field == "" {
			continue
		}
		dates := bsoncore.BuildDocumentElement(nil, x.field, bsoncore.AppendStringElement(nil, "$type", "date"))
		docs, err := g.reads.find(ctx, database, name, bsoncore.BuildDocument(nil, dates), x.field, 1, 1)
		if err != nil {
			g.missing("the oldest document of "+c.Namespace, err)
			continue
		}
		if len(docs) == 0 {
			continue
		}
		v, _ := at(docs[0], strings.Split(x.field, ".")...)
		oldest, ok := v.TimeOK()
		if !ok {
			continue
		}
		b := Backlog{Index: x.Name, Field: x.field, Oldest: oldest.UTC(), Expires: x.ExpireSeconds.Value}
		due := oldest.Add(time.Duration(b.Expires) * time.Second)
		b.Behind = max(0, g.survey.At.Sub(due).Seconds())
		if b.Behind > 0 {
			b.Count = g.expired(ctx, database, name, x.field, g.survey.At.Add(-time.Duration(b.Expires)*time.Second))
		}
		c.Expired = &b
	}
}

// CountedMost is how far a backlog is counted.
const CountedMost = 1_000_000

// expired counts what is older than an instant, by the index; not reported where that takes too long.
func (g *gathering) expired(ctx context.Context, database, name, field string, before time.Time) Figure {
	older := bsoncore.AppendDateTimeElement(nil, "$lt", before.UnixMilli())
	reply, err := g.reads.ask(ctx, database, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "count", name)
		dst = bsoncore.BuildDocumentElement(dst, "query", bsoncore.BuildDocumentElement(nil, field, older))
		dst = bsoncore.AppendInt64Element(dst, "limit", CountedMost)
		return bsoncore.AppendInt64Element(dst, "maxTimeMS", readTime.Milliseconds())
	})
	if err != nil {
		return Figure{}
	}
	return figure(reply, "n")
}

// profile reads what the profiler noted of whole scans.
func (g *gathering) profile(ctx context.Context, database string) {
	scans := bsoncore.BuildDocument(nil, bsoncore.AppendStringElement(nil, "planSummary", "COLLSCAN"))
	docs, err := g.reads.find(ctx, database, "system.profile", scans, "$natural", -1, 200)
	if err != nil {
		g.missing("the profile of "+database, err)
		return
	}
	for _, doc := range docs {
		o := operation.Parse("", doc)
		if !slices.Contains(operation.Kinds, o.Kind) || strings.HasPrefix(o.Namespace, database+".system.") || o.AllowsScan() {
			continue
		}
		millis := figure(doc, "millis").Value
		i := slices.IndexFunc(g.survey.Profiled, func(p Profiled) bool {
			return p.Namespace == o.Namespace && p.Kind == o.Kind && p.Shape == o.Shape
		})
		if i < 0 {
			i = len(g.survey.Profiled)
			g.survey.Profiled = append(g.survey.Profiled, Profiled{Namespace: o.Namespace, Kind: o.Kind, Shape: o.Shape, operation: o})
		}
		g.survey.Profiled[i].Count++
		g.survey.Profiled[i].Millis += millis
	}
}
