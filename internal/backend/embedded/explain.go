package embedded

import (
	"slices"
	"strconv"
	"strings"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// explaining is what an explain reply says beside the plan.
type explaining struct {
	command   bson.Document // the command that is explained
	verbosity string
	above     []string // stages above the engine's plan, outermost first
}

// run reports whether the plan is carried out, for its figures.
func (e explaining) run() bool { return e.verbosity != "queryPlanner" }

// explain tells how a command would be run (https://www.mongodb.com/docs/manual/reference/command/explain/). It writes nothing: of a write,
// what it reads is explained.
func (b *Backend) explain(op operation, req *backend.Request) (bson.Document, error) {
	x, err := statement.ParseExplain(req.Body)
	if err != nil {
		return nil, err
	}
	op, cancel, err := op.reading(&x.Generic)
	if err != nil {
		return nil, err
	}
	defer cancel()
	inner, err := commandIn(x)
	if err != nil {
		return nil, err
	}
	name, _, _ := bson.First(inner)
	e := explaining{command: x.Command, verbosity: x.Verbosity}
	if name == "aggregate" {
		return b.explainAggregateCommand(op, inner, e)
	}
	compile, ok := explainable[name]
	if !ok {
		return nil, mongoerr.New(mongoerr.CommandNotSupported, "Explain of command '%s' is not supported", name)
	}
	target, q, err := compile(inner, &e)
	if err != nil {
		return nil, err
	}
	target.Database = x.Database
	table, exists := b.db.Table(target)
	return explainQuery(op, table, exists, target, q, e)
}

// commandIn returns the command to explain with the database that the explain was sent to.
func commandIn(x *statement.Explain) (bson.Document, error) {
	if v, ok := bson.Get(x.Command, "$db"); ok {
		if s, _ := v.StringValueOK(); s != x.Database {
			return nil, mongoerr.New(mongoerr.InvalidNamespace, "Mismatched $db in explain command. Expected %s but got %s", x.Database, s)
		}
		return x.Command, nil
	}
	if len(x.Command) <= emptyDocument {
		return nil, mongoerr.New(mongoerr.FailedToParse, "explain command requires a nested object")
	}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(x.Command)+len(x.Database)+16))
	dst = append(dst, x.Command[4:len(x.Command)-1]...)
	dst = bsoncore.AppendStringElement(dst, "$db", x.Database)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst, nil
}

// explainable compiles each command that can be explained, but aggregate, to the query that it would run.
var explainable = map[string]func(body bson.Document, e *explaining) (engine.Name, engine.Query, error){
	"find":          explainFind,
	"count":         explainCount,
	"distinct":      explainDistinct,
	"update":        explainUpdate,
	"delete":        explainDelete,
	"findAndModify": explainFindAndModify,
	"findandmodify": explainFindAndModify,
}

func explainFind(body bson.Document, e *explaining) (engine.Name, engine.Query, error) {
	f, err := statement.ParseFind(body)
	if err != nil {
		return engine.Name{}, engine.Query{}, err
	}
	q, projection, err := compileFind(f)
	if projection != nil {
		e.above = []string{"PROJECTION_DEFAULT"}
	}
	return engine.Name{Collection: f.Collection}, q, err
}

func explainCount(body bson.Document, e *explaining) (engine.Name, engine.Query, error) {
	c, err := statement.ParseCount(body)
	if err != nil {
		return engine.Name{}, engine.Query{}, err
	}
	e.above = []string{"COUNT"}
	q, err := compileCount(c)
	return engine.Name{Collection: c.Collection}, q, err
}

func explainDistinct(body bson.Document, _ *explaining) (engine.Name, engine.Query, error) {
	d, err := statement.ParseDistinct(body)
	if err != nil {
		return engine.Name{}, engine.Query{}, err
	}
	q, err := compileDistinct(d)
	return engine.Name{Collection: d.Collection}, q, err
}

func explainUpdate(body bson.Document, e *explaining) (engine.Name, engine.Query, error) {
	u, err := statement.ParseUpdate(&backend.Request{Body: body})
	if err != nil {
		return engine.Name{}, engine.Query{}, err
	}
	if len(u.Updates) != 1 {
		return engine.Name{}, engine.Query{}, errOneStatement
	}
	env, err := environment(u.Let)
	if err != nil {
		return engine.Name{}, engine.Query{}, err
	}
	one, err := compileUpdate(&u.Updates[0], env, false)
	if err != nil {
		return engine.Name{}, engine.Query{}, err
	}
	e.above = []string{"UPDATE"}
	return engine.Name{Collection: u.Collection}, one.Query, nil
}

var errOneStatement = mongoerr.New(mongoerr.InvalidLength, "explained write batches must be of size 1")

func explainDelete(body bson.Document, e *explaining) (engine.Name, engine.Query, error) {
	d, err := statement.ParseDelete(&backend.Request{Body: body})
	if err != nil {
		return engine.Name{}, engine.Query{}, err
	}
	if len(d.Deletes) != 1 {
		return engine.Name{}, engine.Query{}, errOneStatement
	}
	env, err := environment(d.Let)
	if err != nil {
		return engine.Name{}, engine.Query{}, err
	}
	one, err := compileDelete(&d.Deletes[0], env, false)
	if err != nil {
		return engine.Name{}, engine.Query{}, err
	}
	e.above = []string{"DELETE"}
	return engine.Name{Collection: d.Collection}, one.Query, nil
}

func explainFindAndModify(body bson.Document, e *explaining) (engine.Name, engine.Query, error) {
	f, err := statement.ParseFindAndModify(body)
	if err != nil {
		return engine.Name{}, engine.Query{}, err
	}
	one, _, err := compileFindAndModify(f)
	if err != nil {
		return engine.Name{}, engine.Query{}, err
	}
	var q engine.Query
	if f.Remove {
		q, e.above = one.Delete.Query, []string{"DELETE"}
	} else {
		q, e.above = one.Update.Query, []string{"UPDATE"}
	}
	q.Limit = 1
	return engine.Name{Collection: f.Collection}, q, nil
}

// explainQuery builds the reply for a command that is one query.
func explainQuery(op operation, table *engine.Table, exists bool, name engine.Name, q engine.Query, e explaining) (bson.Document, error) {
	p, err := planOf(op, table, exists, q, e)
	if err != nil {
		return nil, err
	}
	return newReply(func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "explainVersion", "1")
		dst = p.append(dst, name, q)
		return appendExplainTail(dst, e)
	}), nil
}

// appendExplainTail appends what stands behind the plans.
func appendExplainTail(dst []byte, e explaining) []byte {
	dst = bsoncore.AppendDocumentElement(dst, "command", e.command)
	return appendDocument(dst, "serverInfo", func(dst []byte) []byte {
		return bsoncore.AppendStringElement(dst, "storageEngine", "pebble")
	})
}

// explained is the engine's plan with the stages above it.
type explained struct {
	winning bson.Document
	stats   bson.Document // executionStats, or nil
	reason  string
	others  []bson.Document // rejectedPlans
}

func planOf(op operation, table *engine.Table, exists bool, q engine.Query, e explaining) (*explained, error) {
	p := &explained{winning: stage("EOF", nil)}
	if !exists && e.run() {
		p.stats = statsOfNothing
	}
	if exists {
		explain := table.Explain
		if slices.Contains(e.above, "COUNT") {
			explain = table.ExplainCount
		}
		doc, err := explain(op, q, e.run())
		if err != nil {
			return nil, err
		}
		p.read(doc)
	}
	p.winning = e.over(p.winning)
	for i := range p.others {
		p.others[i] = e.over(p.others[i])
	}
	return p, nil
}

// over puts the stages above the engine's over a plan of its; a count from the counter has none.
func (e explaining) over(plan bson.Document) bson.Document {
	if _, v, _ := bson.First(plan); isText(v, "RECORD_STORE_FAST_COUNT") {
		return plan
	}
	for i := len(e.above) - 1; i >= 0; i-- {
		plan = stage(e.above[i], plan)
	}
	return plan
}

func isText(v bson.Value, text string) bool {
	s, ok := v.StringValueOK()
	return ok && s == text
}

// read takes the engine's explanation apart.
func (p *explained) read(doc bson.Document) {
	it := bson.Elements(doc)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "winningPlan":
			p.winning = v.Data
		case "executionStats":
			p.stats = v.Data
		case "reason":
			p.reason, _ = v.StringValueOK()
		case "rejectedPlans":
			for others := bson.Elements(v.Data); others.Next(); {
				p.others = append(p.others, others.Value().Data)
			}
		}
	}
}

var statsOfNothing = func() bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendBooleanElement(dst, "executionSuccess", true)
	for _, key := range []string{"nReturned", "executionTimeMillis", "totalKeysExamined", "totalDocsExamined"} {
		dst = bsoncore.AppendInt32Element(dst, key, 0)
	}
	dst = bsoncore.AppendDocumentElement(dst, "executionStages", stage("EOF", nil))
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}()

// stage is one stage of a plan above another.
func stage(name string, input bson.Document) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "stage", name)
	if input != nil {
		dst = bsoncore.AppendDocumentElement(dst, "inputStage", input)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// append appends queryPlanner and, where there is one, executionStats.
func (p *explained) append(dst []byte, name engine.Name, q engine.Query) []byte {
	dst = appendDocument(dst, "queryPlanner", func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "namespace", namespace(name))
		dst = bsoncore.AppendBooleanElement(dst, "indexFilterSet", false)
		parsed := bson.Document{emptyDocument, 0, 0, 0, 0}
		if q.Filter != nil {
			parsed = q.Filter.Raw()
		}
		dst = bsoncore.AppendDocumentElement(dst, "parsedQuery", parsed)
		if p.reason != "" {
			dst = bsoncore.AppendStringElement(dst, "reason", p.reason)
		}
		dst = bsoncore.AppendDocumentElement(dst, "winningPlan", p.winning)
		at, dst := bsoncore.AppendArrayElementStart(dst, "rejectedPlans")
		for i, other := range p.others {
			dst = bsoncore.AppendDocumentElement(dst, strconv.Itoa(i), other)
		}
		dst, _ = bsoncore.AppendArrayEnd(dst, at)
		return dst
	})
	if p.stats != nil {
		dst = bsoncore.AppendDocumentElement(dst, "executionStats", p.stats)
	}
	return dst
}

func (b *Backend) explainAggregateCommand(op operation, body bson.Document, e explaining) (bson.Document, error) {
	a, err := statement.ParseAggregate(withCursor(body))
	if err != nil {
		return nil, err
	}
	p, err := b.compileAggregate(a)
	if err != nil {
		return nil, err
	}
	table, exists := b.db.Table(p.name)
	return b.explainAggregate(op, table, exists, p, e)
}

// withCursor adds the cursor option that an aggregate needs outside of an explain.
func withCursor(body bson.Document) bson.Document {
	if _, ok := bson.Get(body, "cursor"); ok {
		return body
	}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(body)+16))
	dst = append(dst, body[4:len(body)-1]...)
	dst = appendDocument(dst, "cursor", func(dst []byte) []byte { return dst })
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// explainAggregate answers with one queryPlanner where the engine does everything, else with a list of stages that begins with
// $cursor.
func (b *Backend) explainAggregate(op operation, table *engine.Table, exists bool, a *aggregation, e explaining) (bson.Document, error) {
	stages := a.rest.Stages()
	if a.count != nil {
		stages, e.above = nil, []string{"COUNT"}
	}
	if len(stages) == 0 {
		return explainQuery(op, table, exists, a.name, a.query, e)
	}
	p, err := planOf(op, table, exists, a.query, e)
	if err != nil {
		return nil, err
	}
	return newReply(func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "explainVersion", "1")
		at, dst := bsoncore.AppendArrayElementStart(dst, "stages")
		dst = appendIndexed(dst, bson.TypeDocument, 0)
		one, dst := bsoncore.AppendDocumentStart(dst)
		dst = appendDocument(dst, "$cursor", func(dst []byte) []byte { return p.append(dst, a.name, a.query) })
		dst, _ = bsoncore.AppendDocumentEnd(dst, one)
		for i, name := range stages {
			dst = appendIndexed(dst, bson.TypeDocument, i+1)
			one, dst = bsoncore.AppendDocumentStart(dst)
			dst = appendDocument(dst, "$"+strings.TrimPrefix(name, "$"), func(dst []byte) []byte { return dst })
			dst, _ = bsoncore.AppendDocumentEnd(dst, one)
		}
		dst, _ = bsoncore.AppendArrayEnd(dst, at)
		return appendExplainTail(dst, e)
	}), nil
}
