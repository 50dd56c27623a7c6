package engine

import (
	"context"
	"strconv"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
)

// Explain returns winningPlan, the chosen plan as MongoDB's stage tree (COLLSCAN, IDHACK, EOF, IXSCAN with indexBounds, FETCH, OR, SORT_MERGE, SORT,
// SKIP, LIMIT), reason, why it was chosen, rejectedPlans, the trees of the other indexes that would have served, and with run also executionStats
// (https://www.mongodb.com/docs/manual/reference/explain-results/).
func (t *Table) Explain(ctx context.Context, q Query, run bool) (bson.Document, error) {
	return t.explain(ctx, q, run, (*Cursor).measure)
}

// ExplainCount explains a Count: keys alone are read where they decide the filter (COUNT_SCAN for one range of one index), and the table's counter
// answers where there is no filter (RECORD_STORE_FAST_COUNT).
func (t *Table) ExplainCount(ctx context.Context, q Query, run bool) (bson.Document, error) {
	if q.counter() {
		return explainCounter(run)
	}
	want := int64(0)
	if q.Limit > 0 {
		want = saturatingAdd(q.Skip, q.Limit)
	}
	q.Sort, q.Skip, q.Limit, q.counting = nil, 0, 0, true
	return t.explain(ctx, q, run, func(c *Cursor, ctx context.Context) (*explainStats, error) {
		n, err := c.count(ctx, want)
		s := &explainStats{returned: n}
		s.keys, s.documents = c.Examined()
		return s, err
	})
}

func explainCounter(run bool) (bson.Document, error) {
	counter := &stage{name: "RECORD_STORE_FAST_COUNT"}
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = appendStages(bsoncore.AppendHeader(dst, bson.TypeDocument, "winningPlan"), counter)
	dst = bsoncore.AppendStringElement(dst, "reason", "the counter of documents answers")
	dst = bsoncore.AppendArrayElement(dst, "rejectedPlans", bsoncore.NewArrayBuilder().Build())
	if run {
		dst = (&explainStats{}).append(dst, counter)
	}
	return bsoncore.AppendDocumentEnd(dst, at)
}

func (t *Table) explain(ctx context.Context, q Query, run bool, measure func(*Cursor, context.Context) (*explainStats, error)) (bson.Document, error) {
	began := time.Now()
	q.pinned, q.explained = true, true
	c, err := t.open(&q)
	if err != nil {
		return nil, err
	}
	p := *c.x.plan
	p.counting = q.counting
	var stats *explainStats
	if run {
		stats, err = measure(c, ctx)
	}
	if err = firstError(err, c.Close()); err != nil {
		return nil, err
	}
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = appendStages(bsoncore.AppendHeader(dst, bson.TypeDocument, "winningPlan"), p.stages(nil))
	dst = bsoncore.AppendStringElement(dst, "reason", p.reason)
	list, dst := bsoncore.AppendArrayElementStart(dst, "rejectedPlans")
	for i, other := range p.rejected {
		other.counting = q.counting
		dst = appendStages(bsoncore.AppendHeader(dst, bson.TypeDocument, strconv.Itoa(i)), other.stages(nil))
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, list)
	if stats != nil {
		stats.millis = time.Since(began).Milliseconds()
		dst = stats.append(dst, p.stages(stats))
	}
	return bsoncore.AppendDocumentEnd(dst, at)
}

// explainStats are the figures of one run.
type explainStats struct {
	returned, keys, documents, millis int64
}

// measure runs the cursor to its end.
func (c *Cursor) measure(ctx context.Context) (*explainStats, error) {
	s := &explainStats{}
	for {
		doc, err := c.Next(ctx)
		if err != nil {
			return nil, err
		}
		if doc == nil {
			s.keys, s.documents = c.Examined()
			return s, nil
		}
		s.returned++
	}
}

func (s *explainStats) append(dst []byte, stages *stage) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, "executionStats")
	dst = bsoncore.AppendBooleanElement(dst, "executionSuccess", true)
	dst = bsoncore.AppendInt64Element(dst, "nReturned", s.returned)
	dst = bsoncore.AppendInt64Element(dst, "executionTimeMillis", s.millis)
	dst = bsoncore.AppendInt64Element(dst, "totalKeysExamined", s.keys)
	dst = bsoncore.AppendInt64Element(dst, "totalDocsExamined", s.documents)
	dst = appendStages(bsoncore.AppendHeader(dst, bson.TypeDocument, "executionStages"), stages)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// stage is one stage of the tree; what it writes about itself goes between its name and its inputs.
type stage struct {
	name   string
	fields func(dst []byte) []byte
	inputs []*stage
}

// above puts a stage over the tree.
func (s *stage) above(name string, fields func([]byte) []byte) *stage {
	top := &stage{name: name, fields: fields}
	if s != nil {
		top.inputs = []*stage{s}
	}
	return top
}

// stages builds the plan's tree, with the figures of a run where there was one.
func (p *plan) stages(run *explainStats) *stage {
	top := p.reading(run)
	if p.sort != nil {
		top = top.above("SORT", func(dst []byte) []byte {
			dst = bsoncore.AppendDocumentElement(dst, "sortPattern", sortPattern(p))
			dst = bsoncore.AppendInt64Element(dst, "memLimit", maxSortBytes)
			if keep := p.keep(); keep > 0 {
				dst = bsoncore.AppendInt64Element(dst, "limitAmount", keep)
			}
			return dst
		})
	}
	if p.skip > 0 {
		top = top.above("SKIP", func(dst []byte) []byte { return bsoncore.AppendInt64Element(dst, "skipAmount", p.skip) })
	}
	if p.limit > 0 {
		top = top.above("LIMIT", func(dst []byte) []byte { return bsoncore.AppendInt64Element(dst, "limitAmount", p.limit) })
	}
	if run != nil {
		inner := top.fields
		top.fields = func(dst []byte) []byte {
			dst = bsoncore.AppendInt64Element(dst, "nReturned", run.returned)
			if inner != nil {
				dst = inner(dst)
			}
			return dst
		}
	}
	return top
}

// reading builds the stages that bring documents.
func (p *plan) reading(run *explainStats) *stage {
	filtered := func(dst []byte) []byte {
		if p.filter != nil {
			dst = bsoncore.AppendDocumentElement(dst, "filter", p.filter.Raw())
		}
		if run != nil {
			dst = bsoncore.AppendInt64Element(dst, "docsExamined", run.documents)
		}
		return dst
	}
	switch {
	case len(p.scans) == 0:
		return &stage{name: "EOF"}
	case p.id:
		return &stage{name: "IDHACK", fields: filtered}
	case len(p.scans) == 1 && p.scans[0].whole():
		return &stage{name: "COLLSCAN", fields: func(dst []byte) []byte {
			return bsoncore.AppendStringElement(filtered(dst), "direction", p.scans[0].direction())
		}}
	}
	var scans []*stage
	for i := range p.scans {
		scans = append(scans, p.scans[i].stage(run))
	}
	keysOnly := p.counting && p.filter == nil
	if len(scans) == 1 && keysOnly {
		if len(p.scans[0].ranges) == 1 {
			scans[0].name = "COUNT_SCAN"
		}
		return scans[0]
	}
	if len(scans) == 1 {
		return &stage{name: "FETCH", fields: filtered, inputs: scans}
	}
	join := &stage{name: "OR", inputs: scans}
	if p.merge != nil {
		join.name = "SORT_MERGE"
	}
	if keysOnly {
		return join
	}
	return join.above("FETCH", filtered)
}

func (s *scan) direction() string { return directionText(s.backward) }

// stage shows the scan with its bounds, field by field in the direction of the scan.
func (s *scan) stage(run *explainStats) *stage {
	return &stage{name: "IXSCAN", fields: func(dst []byte) []byte {
		at, dst := bsoncore.AppendDocumentElementStart(dst, "keyPattern")
		for _, k := range s.keys {
			dst = bsoncore.AppendInt32Element(dst, k.Path.String(), keyDirection(k))
		}
		dst, _ = bsoncore.AppendDocumentEnd(dst, at)
		dst = bsoncore.AppendStringElement(dst, "indexName", s.name)
		dst = bsoncore.AppendBooleanElement(dst, "isMultiKey", s.multikey)
		dst = bsoncore.AppendBooleanElement(dst, "isUnique", s.index == nil || s.index.Unique)
		dst = bsoncore.AppendBooleanElement(dst, "isSparse", s.index != nil && s.index.Sparse)
		dst = bsoncore.AppendBooleanElement(dst, "isPartial", s.index != nil && s.index.partial != nil)
		dst = bsoncore.AppendInt32Element(dst, "indexVersion", 2)
		dst = bsoncore.AppendStringElement(dst, "direction", s.direction())
		at, dst = bsoncore.AppendDocumentElementStart(dst, "indexBounds")
		if s.min != nil {
			dst = bsoncore.AppendDocumentElement(dst, "startKey", s.min)
		}
		if s.max != nil {
			dst = bsoncore.AppendDocumentElement(dst, "endKey", s.max)
		}
		for i, k := range s.keys {
			if s.min != nil || s.max != nil {
				break
			}
			var list int32
			list, dst = bsoncore.AppendArrayElementStart(dst, k.Path.String())
			for n, text := range s.bounds.fields[i].in.texts(k.Desc != s.backward) {
				dst = bsoncore.AppendStringElement(dst, strconv.Itoa(n), text)
			}
			dst, _ = bsoncore.AppendArrayEnd(dst, list)
		}
		dst, _ = bsoncore.AppendDocumentEnd(dst, at)
		if run != nil {
			dst = bsoncore.AppendInt64Element(dst, "keysExamined", run.keys)
		}
		return dst
	}}
}

func keyDirection(k IndexKey) int32 {
	if k.Desc {
		return -1
	}
	return 1
}

func sortPattern(p *plan) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	for _, k := range p.sort.Keys {
		dst = bsoncore.AppendInt32Element(dst, k.Path.String(), keyDirection(IndexKey{Desc: k.Desc}))
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// appendStages appends a tree as a document; the element's header is there already.
func appendStages(dst []byte, s *stage) []byte {
	at, dst := bsoncore.AppendDocumentStart(dst)
	dst = bsoncore.AppendStringElement(dst, "stage", s.name)
	if s.fields != nil {
		dst = s.fields(dst)
	}
	switch {
	case len(s.inputs) == 1:
		dst = appendStages(bsoncore.AppendHeader(dst, bson.TypeDocument, "inputStage"), s.inputs[0])
	case len(s.inputs) > 1:
		list, inner := bsoncore.AppendArrayElementStart(dst, "inputStages")
		for n, in := range s.inputs {
			inner = appendStages(bsoncore.AppendHeader(inner, bson.TypeDocument, strconv.Itoa(n)), in)
		}
		dst, _ = bsoncore.AppendArrayEnd(inner, list)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
