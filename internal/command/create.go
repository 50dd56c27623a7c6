package command

import (
	"context"

	"oxbow/internal/statement"
)

// create answers create.
func (d *Data) create(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forwardWrite(ctx, a, req, reply)
	}
	c, err := statement.ParseCreate(req.Body)
	if err != nil {
		return err
	}
	_, err = d.Catalog.Create(ctx, a.source.Namespace(), c.Options)
	return err
}
