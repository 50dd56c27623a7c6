package command

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"
)

// errViews refuses a view where it could be one of partitions, or of a collection with a layout, whose documents its server would not find.
func errViews(name string) error {
	return mongoerr.New(mongoerr.CommandNotSupported, "create with viewOn is not supported on the backend %s, which holds partitions or the catalog", name)
}

// create answers create.
func (d *Data) create(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		if _, isView := bson.Get(req.Body, "viewOn"); isView && d.reachesOwn(a.snapshot, a.source.Backend) {
			return errViews(a.source.Backend)
		}
		return d.forwardWrite(ctx, a, req, reply)
	}
	if err := refuseInTransaction(req, a); err != nil {
		return err
	}
	c, err := statement.ParseCreate(req.Body)
	if err != nil {
		return err
	}
	_, err = d.Catalog.Create(ctx, a.source.Namespace(), c.Options)
	return err
}
