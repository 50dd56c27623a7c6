package command

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
	"oxbow/internal/query"
	"oxbow/internal/statement"
)

// stageBytes is the memory of one blocking stage
// (https://www.mongodb.com/docs/manual/core/aggregation-pipeline-limits/#memory-restrictions).
const stageBytes = 100 << 20

// aggregate answers aggregate. On a plain collection that joins no collection with a layout the backend runs it whole; else the gateway runs what
// one target cannot.
func (d *Data) aggregate(ctx context.Context, req *Request, reply *Reply) error {
	if _, onCollection := req.Argument.StringValueOK(); !onCollection {
		return d.aggregateDatabase(ctx, req, reply)
	}
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if leadsWith(req.Body, "$collStats") && (a.source.Collection != nil || d.Exec.Abilities(a.source.Backend).Embedded) {
		return d.aggregateStats(ctx, a, req, reply)
	}
	if a.source.Collection == nil {
		if err := d.checkOutput(req, a.source.Backend); err != nil {
			return err
		}
		if hasOutput(req) {
			req.exchange.Writes, req.preference = true, nil
		}
	}
	if err := d.guarded(ctx, a, req); err != nil {
		return err
	}
	joins, err := d.joinsLayout(a, req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil && !joins {
		return d.forwardCursor(ctx, a.source, req, reply)
	}
	req.composed = true
	if err := refuseSnapshot(req); err != nil {
		return err
	}
	s, err := statement.ParseAggregate(kept(req))
	if err != nil {
		return err
	}
	if s.Explain {
		return d.explainAggregate(ctx, a, s, "queryPlanner", reply)
	}
	prefer(&s.Generic, req)
	p, err := d.planAggregate(a, s)
	if err != nil {
		return err
	}
	req.Plan = p.Find
	return d.firstBatch(ctx, req, reply, a.source.Namespace(), d.Exec.Aggregate(p), batch{size: s.BatchSize})
}

// aggregateDatabase forwards an aggregation on a database; those that the gateway answers itself were taken before.
func (d *Data) aggregateDatabase(ctx context.Context, req *Request, reply *Reply) error {
	if err := d.open(req.Database); err != nil {
		return err
	}
	if req.InTransaction {
		return mongoerr.New(mongoerr.OperationNotSupportedInTxn, "An aggregation on a database is not supported in a transaction")
	}
	s := d.Catalog.Snapshot()
	d.reading(req, s, req.Database, "")
	src := plan.Source{Database: req.Database, Name: "$cmd.aggregate", Backend: s.BackendFor(req.Database)}
	joins, err := d.joinsLayout(view{s, src}, req)
	if err != nil {
		return err
	}
	if joins {
		return mongoerr.New(mongoerr.CommandNotSupported, "an aggregation on a database is not supported with a collection that has a layout")
	}
	if err := d.checkOutput(req, src.Backend); err != nil {
		return err
	}
	if err := checkStream(s, src.Backend, req); err != nil {
		return err
	}
	return d.forwardCursor(ctx, src, req, reply)
}

// checkStream refuses a change stream on a database in which partitions lie or can come to lie, whose changes it would show by their own names, and one on a
// deployment, which would show the catalog's.
func checkStream(s *catalog.Snapshot, backend string, req *Request) error {
	stage, _, _ := firstStage(req.Body)
	if stage != "$changeStream" {
		return nil
	}
	if req.Database == "admin" {
		return mongoerr.New(mongoerr.CommandNotSupported, "a change stream on a deployment is not supported: it would show partitions and the catalog. Watch databases or collections")
	}
	if len(s.Collections(req.Database)) > 0 || s.Uses(backend, req.Database) {
		return mongoerr.New(mongoerr.CommandNotSupported, "a change stream on database %s is not supported: partitions lie in it. Watch its collections that have no layout", req.Database)
	}
	return nil
}

func (d *Data) planAggregate(a view, s *statement.Aggregate) (*plan.Aggregate, error) {
	env, err := d.envWith(s.Let)
	if err != nil {
		return nil, err
	}
	pipeline, err := query.ParsePipeline(s.Pipeline, query.PipelineOptions{Env: env, MaxBytes: stageBytes, Memory: d.Exec.Memory, Lookup: d.lookup(a, &s.Generic)})
	if err != nil {
		return nil, err
	}
	return plan.NewAggregate(s, a.source, pipeline, env)
}

// lookup finds the documents of another collection of the database, whatever its layout, for the $lookup of an aggregation, as that one reads.
func (d *Data) lookup(a view, g *statement.Generic) func(context.Context, string, query.Head) (query.Documents, error) {
	database := a.source.Database
	return func(_ context.Context, collection string, find query.Head) (query.Documents, error) {
		src := plan.Source{Database: database, Name: collection, Collection: a.snapshot.Collection(database + "." + collection)}
		if src.Collection == nil {
			src.Backend = a.snapshot.BackendFor(database)
		}
		f := &statement.Find{
			Generic: statement.Generic{Database: database, ReadConcern: g.ReadConcern, ReadPreference: g.ReadPreference}, Collection: collection, BatchSize: -1,
			Filter: find.Filter, Sort: find.Sort, Skip: find.Skip, Limit: find.Limit, Let: find.Let,
		}
		env := d.env()
		let, err := query.EvalLet(find.Let, env)
		if err != nil {
			return nil, err
		}
		env.Let = let
		p, err := plan.NewFind(f, src, env)
		if err != nil {
			return nil, err
		}
		return d.Exec.Find(p), nil
	}
}

// joinsLayout reports whether a pipeline names a collection with a layout on the side: a backend that runs it whole would find none of that one's
// documents. One that names the catalog's database is refused.
func (d *Data) joinsLayout(a view, req *Request) (bool, error) {
	v, ok := bson.Get(req.Body, "pipeline")
	if !ok {
		return false, nil
	}
	joins := false
	err := sideCollections(v, a.source.Database, func(database, name string) error {
		joins = joins || a.snapshot.Collection(database+"."+name) != nil
		return d.open(database)
	})
	return joins, err
}

// sideCollections visits what stands where stages name another collection: in from ($lookup, $graphLookup), coll ($unionWith, $out, $merge), into, and as the
// plain argument of a stage. A collection is named by itself or with its database, as {db, coll}. What stands there for another reason is visited too.
func sideCollections(v bson.Value, database string, visit func(database, collection string) error) error {
	if v.Type != bson.TypeDocument && v.Type != bson.TypeArray {
		return nil
	}
	it := bson.Elements(v.Data)
	for it.Next() {
		switch string(it.Key()) {
		case "from", "coll", "into", "$out", "$merge", "$unionWith":
			if err := visit(outputOf(it.Value(), database)); err != nil {
				return err
			}
		}
		if err := sideCollections(it.Value(), database, visit); err != nil {
			return err
		}
	}
	return nil
}
