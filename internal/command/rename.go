package command

import (
	"context"

	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"
)

// renameCollection answers renameCollection, for plain collections.
func (d *Data) renameCollection(ctx context.Context, req *Request, reply *Reply) error {
	r, err := statement.ParseRenameCollection(req.Body)
	if err != nil {
		return err
	}
	s := d.Catalog.Snapshot()
	var backends [2]string
	for i, ns := range []string{r.From, r.To} {
		database, name, err := splitNamespace(ns)
		if err != nil {
			return err
		}
		if s.Collection(ns) != nil {
			return mongoerr.New(mongoerr.CommandNotSupported, "cannot rename %s to %s: %s has a layout", r.From, r.To, ns)
		}
		a, err := d.named(database, name)
		if err != nil {
			return err
		}
		if err := a.writable(); err != nil {
			return err
		}
		backends[i] = a.source.Backend
	}
	if backends[0] != backends[1] {
		return mongoerr.New(mongoerr.CommandNotSupported, "cannot rename %s to %s: they lie on the backends %s and %s", r.From, r.To, backends[0], backends[1])
	}
	return d.forward(ctx, backends[0], req, reply)
}

// splitNamespace splits "database.collection" and checks both names.
func splitNamespace(ns string) (database, collection string, err error) {
	for i := range len(ns) {
		if ns[i] == '.' {
			database, collection = ns[:i], ns[i+1:]
			break
		}
	}
	if err := statement.CheckDatabase(database); err != nil {
		return "", "", mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified '%s'", ns)
	}
	return database, collection, statement.CheckCollection(database, collection)
}
