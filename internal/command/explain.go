package command

import (
	"context"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// explain answers explain: the route with its reason, and what each of its partitions says
// (https://www.mongodb.com/docs/manual/reference/explain-results/#sharded-collections).
func (d *Data) explain(ctx context.Context, req *Request, reply *Reply) error {
	e, err := statement.ParseExplain(req.Body)
	if err != nil {
		return err
	}
	name, argument, ok := bson.First(e.Command)
	if !ok {
		return mongoerr.New(mongoerr.FailedToParse, "explain of an empty command")
	}
	inner := &Request{Name: name, Argument: argument, Database: req.Database, Body: withDatabase(e.Command, req.Database), Sequences: req.Sequences}
	a, err := d.collection(inner)
	if err != nil {
		return err
	}
	if err := d.guardedExplain(ctx, a, req, inner, e.Verbosity); err != nil {
		return err
	}
	joins := false
	if name == "aggregate" {
		if joins, err = d.joinsLayout(a, inner); err != nil {
			return err
		}
	}
	if a.source.Collection == nil && !joins {
		return d.forward(ctx, a.source.Backend, req, reply)
	}
	p, err := d.planExplain(a, inner)
	if err != nil {
		return err
	}
	return d.answerExplain(ctx, a, p, e.Verbosity, reply)
}

// withDatabase adds $db, which an explained command does not carry itself.
func withDatabase(command bson.Document, database string) bson.Document {
	if _, ok := bson.Get(command, "$db"); ok {
		return command
	}
	dst := append(bson.Document(nil), command[:len(command)-1]...)
	dst, _ = bsoncore.AppendDocumentEnd(bsoncore.AppendStringElement(dst, "$db", database), 0)
	return dst
}

// planExplain plans the explained command.
func (d *Data) planExplain(a view, req *Request) (*plan.Explain, error) {
	explain, ok := explainers[req.Name]
	if !ok {
		return nil, mongoerr.New(mongoerr.CommandNotSupported, "Explain of command '%s' is not supported", req.Name)
	}
	return explain(d, a, &backend.Request{Body: req.Body, Sequences: req.Sequences})
}

// explainers plan each command that can be explained.
var explainers = map[string]func(*Data, view, *backend.Request) (*plan.Explain, error){
	"find":          (*Data).explainFind,
	"aggregate":     (*Data).explainPipeline,
	"count":         (*Data).explainCount,
	"distinct":      (*Data).explainDistinct,
	"update":        (*Data).explainUpdate,
	"delete":        (*Data).explainDelete,
	"findAndModify": (*Data).explainFindAndModify,
	"findandmodify": (*Data).explainFindAndModify,
}

func (d *Data) explainFind(a view, r *backend.Request) (*plan.Explain, error) {
	f, err := statement.ParseFind(r.Body)
	if err != nil {
		return nil, err
	}
	env, err := d.envWith(f.Let)
	if err != nil {
		return nil, err
	}
	p, err := plan.NewFind(f, a.source, env)
	if err != nil {
		return nil, err
	}
	return plan.ExplainFind(p), nil
}

func (d *Data) explainPipeline(a view, r *backend.Request) (*plan.Explain, error) {
	s, err := statement.ParseAggregate(r.Body)
	if err != nil {
		return nil, err
	}
	p, err := d.planAggregate(a, s)
	if err != nil {
		return nil, err
	}
	return plan.ExplainAggregate(p), nil
}

func (d *Data) explainCount(a view, r *backend.Request) (*plan.Explain, error) {
	c, err := statement.ParseCount(r.Body)
	if err != nil {
		return nil, err
	}
	p, err := plan.NewCount(c, a.source, d.env())
	if err != nil {
		return nil, err
	}
	return plan.ExplainCount(p), nil
}

func (d *Data) explainDistinct(a view, r *backend.Request) (*plan.Explain, error) {
	s, err := statement.ParseDistinct(r.Body)
	if err != nil {
		return nil, err
	}
	p, err := plan.NewDistinct(s, a.source, d.env())
	if err != nil {
		return nil, err
	}
	return plan.ExplainDistinct(p), nil
}

func (d *Data) explainUpdate(a view, r *backend.Request) (*plan.Explain, error) {
	s, err := statement.ParseUpdate(r)
	if err != nil {
		return nil, err
	}
	env, err := d.envWith(s.Let)
	if err != nil {
		return nil, err
	}
	return plan.ExplainUpdate(s, a.source, env)
}

func (d *Data) explainDelete(a view, r *backend.Request) (*plan.Explain, error) {
	s, err := statement.ParseDelete(r)
	if err != nil {
		return nil, err
	}
	env, err := d.envWith(s.Let)
	if err != nil {
		return nil, err
	}
	return plan.ExplainDelete(s, a.source, env)
}

func (d *Data) explainFindAndModify(a view, r *backend.Request) (*plan.Explain, error) {
	f, err := statement.ParseFindAndModify(r.Body)
	if err != nil {
		return nil, err
	}
	env, err := d.envWith(f.Let)
	if err != nil {
		return nil, err
	}
	p, err := plan.NewFindAndModify(f, a.source, newObjectID, env)
	if err != nil {
		return nil, err
	}
	return plan.ExplainFindAndModify(f, p), nil
}

// explainAggregate answers aggregate with explain: true.
func (d *Data) explainAggregate(ctx context.Context, a view, s *statement.Aggregate, verbosity string, reply *Reply) error {
	p, err := d.planAggregate(a, s)
	if err != nil {
		return err
	}
	return d.answerExplain(ctx, a, plan.ExplainAggregate(p), verbosity, reply)
}

// answerExplain asks every target to explain its part and writes the whole.
func (d *Data) answerExplain(ctx context.Context, a view, p *plan.Explain, verbosity string, reply *Reply) error {
	parts, err := d.Exec.Explain(ctx, p, verbosity)
	if err != nil {
		return err
	}
	dst := reply.Elements
	at, dst := bsoncore.AppendDocumentElementStart(dst, "queryPlanner")
	dst = bsoncore.AppendInt32Element(dst, "mongosPlannerVersion", 1)
	dst = bsoncore.AppendStringElement(dst, "namespace", a.source.Namespace())
	winning, dst := bsoncore.AppendDocumentElementStart(dst, "winningPlan")
	dst = bsoncore.AppendStringElement(dst, "stage", p.Stage)
	dst = appendParts(dst, p.Routed.Targets, parts, "queryPlanner")
	dst, _ = bsoncore.AppendDocumentEnd(dst, winning)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	if verbosity != "queryPlanner" {
		dst = appendStats(dst, p, parts)
	}
	reply.Elements = appendRoute(dst, p)
	return nil
}

// appendRoute appends Oxbow's own part: which partitions, and why.
func appendRoute(dst []byte, p *plan.Explain) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, "oxbow")
	dst = bsoncore.AppendInt32Element(dst, "partitions", int32(len(p.Routed.Targets)))
	dst = bsoncore.AppendInt32Element(dst, "of", int32(p.Routed.Of))
	dst = bsoncore.AppendStringElement(dst, "reason", p.Routed.Reason())
	names := make([]string, len(p.Routed.Targets))
	for i, t := range p.Routed.Targets {
		names[i] = t.String()
	}
	dst = appendArray(dst, "targets", names)
	if p.Gateway != "" {
		dst = bsoncore.AppendStringElement(dst, "gateway", p.Gateway)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// appendParts appends each partition's own section of that name.
func appendParts(dst []byte, targets []plan.Target, parts []bson.Document, section string) []byte {
	at, dst := bsoncore.AppendArrayElementStart(dst, "shards")
	for i, t := range targets {
		var one int32
		one, dst = bsoncore.AppendDocumentElementStart(dst, index(i))
		dst = bsoncore.AppendStringElement(dst, "shardName", t.Backend)
		dst = bsoncore.AppendStringElement(dst, "partition", t.Namespace.String())
		if v, ok := bson.Get(parts[i], section); ok && v.Type == bson.TypeDocument {
			dst = append(dst, v.Data[4:len(v.Data)-1]...)
		}
		dst, _ = bsoncore.AppendDocumentEnd(dst, one)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}

// appendStats appends the sums of the partitions' execution figures, and these themselves.
func appendStats(dst []byte, p *plan.Explain, parts []bson.Document) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, "executionStats")
	for _, name := range []string{"nReturned", "totalKeysExamined", "totalDocsExamined"} {
		var sum int64
		for _, part := range parts {
			stats, _ := bson.Get(part, "executionStats")
			v, _ := bson.Get(stats.Data, name)
			n, _ := v.AsInt64OK()
			sum += n
		}
		dst = appendCount(dst, name, sum)
	}
	stages, dst := bsoncore.AppendDocumentElementStart(dst, "executionStages")
	dst = bsoncore.AppendStringElement(dst, "stage", p.Stage)
	dst = appendParts(dst, p.Routed.Targets, parts, "executionStats")
	dst, _ = bsoncore.AppendDocumentEnd(dst, stages)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
