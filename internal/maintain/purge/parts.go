package purge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// gatewayParts are the partitions of a collection of a gateway that is reached as a server.
type gatewayParts struct{ c *collection }

// GatewayParts returns the partitions of a collection that a gateway splits by time; nil where the server is no gateway, or the collection is not split so.
func GatewayParts(ctx context.Context, b backend.Backend, ns backend.Namespace) (Parts, error) {
	g := gatewayParts{&collection{Target{Backend: b, Namespace: ns}, defaultComment}}
	parts, err := g.List(ctx)
	switch {
	case mongoerr.Is(err, mongoerr.CommandNotFound) || mongoerr.Is(err, mongoerr.NamespaceNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case len(parts) == 0:
		return nil, nil
	}
	return g, nil
}

// List implements Parts.
func (g gatewayParts) List(ctx context.Context) ([]Part, error) {
	body := bsoncore.NewDocumentBuilder().AppendString("listPartitions", g.c.Namespace.Collection).AppendBoolean("stats", true)
	reply, err := g.c.run(ctx, g.c.Backend, body)
	if err != nil {
		return nil, err
	}
	cursor, err := backend.ParseCursorReply(reply)
	if err != nil {
		return nil, err
	}
	list := documents(cursor.Batch)
	for cursor.ID != 0 {
		more := bsoncore.NewDocumentBuilder().AppendInt64("getMore", cursor.ID).AppendString("collection", g.c.Namespace.Collection)
		if reply, err = g.c.run(ctx, g.c.Backend, more); err != nil {
			return nil, err
		}
		if cursor, err = backend.ParseCursorReply(reply); err != nil {
			return nil, err
		}
		list = append(list, documents(cursor.Batch)...)
	}
	var parts []Part
	for _, d := range list {
		if p, ok := g.part(d); ok {
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// part reads one row of listPartitions; false for one that is no range of time, or is on its way out.
func (g gatewayParts) part(row bson.Document) (Part, bool) {
	state, _ := bson.Get(row, "state")
	name, _ := bson.Get(row, "name")
	start, _ := bson.Get(row, "start")
	end, _ := bson.Get(row, "end")
	p := Part{Backend: g.c.Backend, Documents: -1, Bytes: -1}
	p.Name, _ = name.StringValueOK()
	p.Namespace = namespaceOf(p.Name)
	var dated bool
	if p.Start, dated = start.TimeOK(); !dated {
		return p, false
	}
	p.End, _ = end.TimeOK()
	field, _ := bson.Get(row, "field")
	p.Field, _ = field.StringValueOK()
	if n, ok := bson.Get(row, "count"); ok {
		p.Documents, _ = n.AsInt64OK()
	}
	if n, ok := bson.Get(row, "size"); ok {
		p.Bytes, _ = n.AsInt64OK()
	}
	text, _ := state.StringValueOK()
	return p, text == route.Active.String() || text == route.Hidden.String()
}

func namespaceOf(name string) backend.Namespace {
	for i := range len(name) {
		if name[i] == '.' {
			return backend.Namespace{Database: name[:i], Collection: name[i+1:]}
		}
	}
	return backend.Namespace{Database: name}
}

// Hide implements Parts. A part that is hidden already is fine.
func (g gatewayParts) Hide(ctx context.Context, p Part) error {
	err := g.do(ctx, "hidePartition", p)
	if mongoerr.Is(err, mongoerr.IllegalOperation) {
		return nil
	}
	return err
}

// Drop implements Parts.
func (g gatewayParts) Drop(ctx context.Context, p Part) error { return g.do(ctx, "dropPartition", p) }

func (g gatewayParts) do(ctx context.Context, command string, p Part) error {
	_, err := g.c.run(ctx, g.c.Backend, bsoncore.NewDocumentBuilder().AppendString(command, g.c.Namespace.Collection).AppendString("partition", p.Name))
	return err
}

// CatalogParts are the partitions of a collection within its gateway.
type CatalogParts struct {
	Catalog  *catalog.Catalog
	Backends map[string]backend.Backend
	Name     string // of the collection, "database.collection"
}

// List implements Parts.
func (c CatalogParts) List(ctx context.Context) ([]Part, error) {
	col := c.Catalog.Snapshot().Collection(c.Name)
	if col == nil || col.Table.Layout.Time == nil {
		return nil, fmt.Errorf("%s is not split by time", c.Name)
	}
	var parts []Part
	for _, p := range col.All {
		if p.State != route.Active && p.State != route.Hidden {
			continue
		}
		part := Part{
			Name: p.Name(), Backend: c.Backends[p.Backend], Namespace: backend.Namespace{Database: p.Database, Collection: p.Collection},
			Field: col.Table.Layout.Time.Field.String(), Start: time.UnixMilli(p.Start), End: time.UnixMilli(p.End), Documents: -1, Bytes: -1,
		}
		part.measure(ctx)
		parts = append(parts, part)
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return a.Start.Compare(b.Start) })
	return parts, nil
}

// measure asks for a part's figures, which stay unknown where there is no answer.
func (p *Part) measure(ctx context.Context) {
	c := &collection{Target{Backend: p.Backend, Namespace: p.Namespace}, defaultComment}
	reply, err := c.run(ctx, c.Backend, bsoncore.NewDocumentBuilder().AppendString("collStats", p.Namespace.Collection))
	if err != nil {
		return
	}
	p.Documents, p.Bytes = figure(reply, "count"), figure(reply, "size")
}

// Hide implements Parts.
func (c CatalogParts) Hide(ctx context.Context, p Part) error {
	err := c.Catalog.Hide(ctx, c.Name, p.Name)
	if mongoerr.Is(err, mongoerr.IllegalOperation) {
		return nil
	}
	return err
}

// Drop implements Parts.
func (c CatalogParts) Drop(ctx context.Context, p Part) error {
	return c.Catalog.DropPartition(ctx, c.Name, p.Name)
}

// CatalogTargets are the partitions that a collection is read from within its gateway, for Options.Targets.
func CatalogTargets(c *catalog.Catalog, backends map[string]backend.Backend, name string) func(context.Context) ([]Target, error) {
	return func(context.Context) ([]Target, error) {
		col := c.Snapshot().Collection(name)
		if col == nil {
			return nil, fmt.Errorf("%s has no layout", name)
		}
		var targets []Target
		for _, p := range col.Table.Partitions {
			if p.Opening {
				continue
			}
			targets = append(targets, Target{
				Backend: backends[p.Backend], Name: p.Backend, Namespace: backend.Namespace{Database: p.Database, Collection: p.Collection},
			})
		}
		return targets, nil
	}
}
