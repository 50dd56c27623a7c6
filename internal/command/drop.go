package command

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/catalog"
	"oxbow/internal/cursor"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
	"oxbow/internal/statement"
)

// drop answers drop: of a collection with a layout, all partitions at once, whatever retention would have held.
func (d *Data) drop(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	defer d.guard.forget()
	if a.source.Collection == nil {
		return d.forwardWrite(ctx, a, req, reply)
	}
	if _, err := statement.ParseDrop(req.Body); err != nil {
		return err
	}
	ns := a.source.Namespace()
	found, err := d.Catalog.Drop(ctx, ns)
	if err != nil {
		return err
	}
	d.dropCursors(func(i cursor.Info) bool { return i.Namespace == ns })
	if found {
		reply.Elements = bsoncore.AppendInt32Element(reply.Elements, "nIndexesWas", int32(len(a.source.Collection.Indexes)+1))
		reply.Elements = bsoncore.AppendStringElement(reply.Elements, "ns", ns)
	}
	return nil
}

// dropCursors kills the cursors on collections that were dropped: their documents are gone, those that were already fetched too.
func (d *Data) dropCursors(match func(cursor.Info) bool) {
	d.Cursors.KillWhere(match, mongoerr.New(mongoerr.QueryPlanKilled, "collection dropped"))
}

// dropDatabase answers dropDatabase: the collections with a layout, then the plain ones. The backend drops the database itself only where no
// collection of it has a layout: it would take partitions along that are made at the same time. Without collections a database is gone anyway.
func (d *Data) dropDatabase(ctx context.Context, req *Request, reply *Reply) error {
	s, err := statement.ParseDropDatabase(req.Body)
	if err != nil {
		return err
	}
	if err := d.open(s.Database); err != nil {
		return err
	}
	own := slices.ContainsFunc(d.Catalog.Snapshot().Collections(s.Database), func(c *catalog.Collection) bool { return c.Created })
	if err := d.Catalog.DropDatabase(ctx, s.Database); err != nil {
		return err
	}
	d.dropCursors(func(i cursor.Info) bool { return strings.HasPrefix(i.Namespace, s.Database+".") })
	snapshot := d.Catalog.Snapshot()
	name := snapshot.BackendFor(s.Database)
	plain, partitions, err := d.plainCollections(ctx, view{snapshot: snapshot}, name, s.Database)
	if err != nil {
		return err
	}
	switch {
	case len(snapshot.Collections(s.Database)) > 0:
	case partitions == 0:
		return d.forward(ctx, name, req, reply)
	case len(plain) == 0:
		return mongoerr.New(mongoerr.CommandNotSupported, "%s holds nothing but partitions, which go with their collection or by retention", s.Database)
	}
	for _, collection := range plain {
		t := plan.Target{Backend: name, Namespace: backend.Namespace{Database: s.Database, Collection: collection}}
		if err := d.onTarget(ctx, t, "drop"); err != nil {
			return err
		}
	}
	if own || len(plain) > 0 {
		reply.Elements = bsoncore.AppendStringElement(reply.Elements, "dropped", s.Database)
	}
	return nil
}

// onTarget runs a command that needs nothing but its collection.
func (d *Data) onTarget(ctx context.Context, t plan.Target, name string) error {
	reply, err := d.Exec.Run(ctx, t.Backend, &backend.Request{Body: plan.Command{Name: name}.For(t.Namespace)})
	if err != nil {
		return err
	}
	return backend.Check(reply)
}
