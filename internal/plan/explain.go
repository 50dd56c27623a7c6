package plan

import (
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Explain is what explain tells of a command: where it goes and why, what each target is asked, what the gateway does.
type Explain struct {
	Routed  Routed
	Command Command // explained by each target
	Stage   string  // of the gateway: SINGLE_SHARD, SHARD_MERGE, SHARD_MERGE_SORT, as a router names them
	Gateway string  // the gateway's part in words, "" for none
}

// ExplainFind explains a find.
func ExplainFind(p *Find) *Explain {
	e := &Explain{Routed: p.Routed, Command: p.Command, Stage: stage(p.Routed)}
	if len(p.Routed.Targets) > 1 && p.Sort != nil {
		e.Stage = "SHARD_MERGE_SORT"
	}
	e.Gateway = p.gateway()
	return e
}

// ExplainAggregate explains an aggregation.
func ExplainAggregate(p *Aggregate) *Explain {
	if p.Whole != nil {
		whole := p.Whole.With(bsoncore.AppendDocumentElement(nil, "cursor", emptyDocument))
		return &Explain{Routed: p.Find.Routed, Command: whole, Stage: stage(p.Find.Routed)}
	}
	e := ExplainFind(p.Find)
	if stages := p.Rest.Stages(); len(stages) > 0 {
		e.Gateway = strings.TrimPrefix(e.Gateway+", "+strings.Join(stages, ", "), ", ")
	}
	return e
}

// ExplainCount explains a count.
func ExplainCount(p *Count) *Explain {
	return &Explain{Routed: p.Routed, Command: p.Command, Stage: stage(p.Routed), Gateway: "sum"}
}

// ExplainDistinct explains a distinct.
func ExplainDistinct(p *Distinct) *Explain {
	return &Explain{Routed: p.Routed, Command: p.Command, Stage: stage(p.Routed), Gateway: "union"}
}

// ExplainUpdate explains an update by the route of its only statement.
func ExplainUpdate(u *statement.Update, src Source, env query.Env) (*Explain, error) {
	if len(u.Updates) != 1 {
		return nil, errExplainBatch()
	}
	return explainWrite("update", u.Updates[0].Filter, u.Updates[0].Raw, u.Let, src, env)
}

// ExplainDelete explains a delete by the route of its only statement.
func ExplainDelete(d *statement.Delete, src Source, env query.Env) (*Explain, error) {
	if len(d.Deletes) != 1 {
		return nil, errExplainBatch()
	}
	return explainWrite("delete", d.Deletes[0].Filter, d.Deletes[0].Raw, d.Let, src, env)
}

func errExplainBatch() error {
	return mongoerr.New(mongoerr.InvalidLength, "explained write batches must be of size 1")
}

func explainWrite(name string, filter, statement, let bson.Document, src Source, env query.Env) (*Explain, error) {
	f, err := query.ParseFilter(filter, env)
	if err != nil {
		return nil, err
	}
	_, routed := src.route(f)
	rest := bsoncore.AppendArrayElement(nil, name+"s", bsoncore.NewArrayBuilder().AppendDocument(statement).Build())
	rest = appendDocument(rest, "let", let)
	return &Explain{Routed: routed, Command: Command{name, rest}, Stage: stage(routed)}, nil
}

// ExplainFindAndModify explains a findAndModify.
func ExplainFindAndModify(f *statement.FindAndModify, p *FindAndModify) *Explain {
	c := p.Command.With(appendDocument(nil, "query", f.Query))
	return &Explain{Routed: p.Routed, Command: c, Stage: stage(p.Routed)}
}

func stage(r Routed) string {
	if len(r.Targets) == 1 {
		return "SINGLE_SHARD"
	}
	return "SHARD_MERGE"
}

// gateway tells what the gateway does to the merged stream.
func (p *Find) gateway() string {
	var parts []string
	if p.Sort != nil && len(p.Routed.Targets) > 1 {
		parts = append(parts, "merge by sort")
	}
	if p.Skip > 0 {
		parts = append(parts, "skip")
	}
	if p.Limit > 0 {
		parts = append(parts, "limit")
	}
	if p.Projection != nil {
		parts = append(parts, "project")
	}
	return strings.Join(parts, ", ")
}
