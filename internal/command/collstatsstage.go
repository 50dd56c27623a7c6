package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"
)

// leadsWith reports whether a pipeline begins with a stage.
func leadsWith(body bson.Document, stage string) bool {
	pipeline, _ := bson.Get(body, "pipeline")
	stages, ok := pipeline.ArrayOK()
	if !ok {
		return false
	}
	it := bson.Elements(stages)
	if !it.Next() || it.Value().Type != bson.TypeDocument {
		return false
	}
	name, _, _ := bson.First(it.Value().Data)
	return name == stage
}

// statsWanted are the parts of $collStats that are asked for
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/collStats/).
type statsWanted struct {
	latency, storage, count bool
	scale                   int64
}

// aggregateStats answers an aggregation that begins with $collStats, on a collection of the engine or one with a layout: one document, whatever the
// number of partitions, and what the stages behind it make of it.
func (d *Data) aggregateStats(ctx context.Context, a view, req *Request, reply *Reply) error {
	s, err := statement.ParseAggregate(kept(req))
	if err != nil {
		return err
	}
	if s.Explain {
		return mongoerr.New(mongoerr.CommandNotSupported, "explaining $collStats is not supported")
	}
	_, argument, rest := firstStage(req.Body)
	wanted, err := parseStatsWanted(argument)
	if err != nil {
		return err
	}
	doc, err := d.statsDocument(ctx, a, req, wanted)
	if err != nil {
		return err
	}
	docs := []bson.Document{doc}
	if len(rest) > len(emptyDocument) {
		env, err := d.envWith(s.Let)
		if err != nil {
			return err
		}
		if docs, err = runPipeline(ctx, docs, rest, env); err != nil {
			return err
		}
	}
	return writeCursor(reply, a.source.Namespace(), docs)
}

func parseStatsWanted(argument bson.Value) (statsWanted, error) {
	w := statsWanted{scale: 1}
	options, ok := argument.DocumentOK()
	if !ok {
		return w, mongoerr.New(mongoerr.FailedToParse, "The $collStats stage must be an object, but found: %s", bson.TypeName(argument.Type))
	}
	it := bson.Elements(options)
	for it.Next() {
		key := string(it.Key())
		part, isDoc := it.Value().DocumentOK()
		var err error
		switch key {
		case "latencyStats":
			w.latency = true
			if truthy(part, "histograms") {
				err = mongoerr.New(mongoerr.CommandNotSupported, "'$collStats.latencyStats.histograms' is not supported yet")
			} else {
				err = statsFields(part, key, "histograms")
			}
		case "storageStats":
			w.storage = true
			if err = statsFields(part, key, "scale"); err == nil {
				w.scale, err = statsScale(part)
			}
		case "count":
			w.count = true
			err = statsFields(part, key)
		case "queryExecStats", "targetAllNodes":
			err = mongoerr.New(mongoerr.CommandNotSupported, "'$collStats.%s' is not supported yet", key)
		default:
			err = mongoerr.New(mongoerr.IDLUnknownField, "BSON field '$collStats.%s' is an unknown field.", key)
		}
		if !isDoc && err == nil {
			err = wrongType("$collStats."+key, it.Value().Type, "object")
		}
		if err != nil {
			return w, err
		}
	}
	return w, nil
}

// statsFields refuses what a part of $collStats doesn't take.
func statsFields(part bson.Document, name string, known ...string) error {
	it := bson.Elements(part)
	for part != nil && it.Next() {
		if !contains(known, it.Key()) {
			return mongoerr.New(mongoerr.IDLUnknownField, "BSON field '$collStats.%s.%s' is an unknown field.", name, it.Key())
		}
	}
	return nil
}

func statsScale(part bson.Document) (int64, error) {
	v, ok := bson.Get(part, "scale")
	if !ok {
		return 1, nil
	}
	n, whole := wholeNumber(v)
	if !whole || n < 1 {
		return 0, mongoerr.New(mongoerr.IDLValueBelowMin, "BSON field 'scale' value must be >= 1")
	}
	return n, nil
}

// statsDocument makes the stage's document of what the command collStats says.
func (d *Data) statsDocument(ctx context.Context, a view, req *Request, w statsWanted) (bson.Document, error) {
	var figures bson.Document
	if w.storage || w.count {
		var err error
		if figures, err = d.figuresOf(ctx, a, req, w.scale); err != nil {
			return nil, err
		}
	}
	ns := a.source.Namespace()
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "ns", ns)
	dst = bsoncore.AppendStringElement(dst, "host", d.table.deps.Server.Host)
	dst = bsoncore.AppendDateTimeElement(dst, "localTime", d.Now().UnixMilli())
	if w.latency {
		dst = d.table.usages.appendLatencies(dst, ns)
	}
	if w.storage {
		one, storage := bsoncore.AppendDocumentElementStart(dst, "storageStats")
		it := bson.Elements(figures)
		for it.Next() {
			if key := string(it.Key()); key != "ns" && key != "ok" {
				storage = append(storage, it.Raw()...)
			}
		}
		dst, _ = bsoncore.AppendDocumentEnd(storage, one)
	}
	if w.count {
		n, _ := bson.Get(figures, "count")
		dst = bsoncore.AppendValueElement(dst, "count", n)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst, nil
}

// figuresOf runs the command collStats.
func (d *Data) figuresOf(ctx context.Context, a view, req *Request, scale int64) (bson.Document, error) {
	at, body := bsoncore.AppendDocumentStart(nil)
	body = bsoncore.AppendStringElement(body, "collStats", a.source.Name)
	body = bsoncore.AppendInt64Element(body, "scale", scale)
	body = bsoncore.AppendStringElement(body, "$db", a.source.Database)
	body, _ = bsoncore.AppendDocumentEnd(body, at)
	// It is a part of the same request, whose session and times it takes part in.
	whole, argument := req.Body, req.Argument
	req.Body = body
	_, req.Argument, _ = bson.First(body)
	defer func() { req.Body, req.Argument = whole, argument }()
	reply := Reply{Elements: make([]byte, 4, 512)}
	if err := d.collStats(ctx, req, &reply); err != nil {
		return nil, err
	}
	figures := reply.Document
	if figures == nil {
		figures, _ = bsoncore.AppendDocumentEnd(reply.Elements, 0)
	}
	if err := backend.Check(figures); reply.Document != nil && err != nil {
		return nil, err
	}
	there := a.source.Collection != nil && a.source.Collection.Created
	if a.source.Collection == nil {
		_, there = bson.Get(figures, "capped") // the figures of a collection that isn't there lack it
	}
	if !there {
		return nil, mongoerr.New(mongoerr.NamespaceNotFound,
			"Unable to retrieve storageStats in $collStats stage :: caused by :: Collection [%s] not found.", a.source.Namespace())
	}
	return figures, nil
}

// appendLatencies appends what commands on a collection took, in microseconds.
func (u *usages) appendLatencies(dst []byte, namespace string) []byte {
	u.mu.RLock()
	one := u.by[namespace]
	u.mu.RUnlock()
	if one == nil {
		one = &usage{}
	}
	at, dst := bsoncore.AppendDocumentElementStart(dst, "latencyStats")
	for _, group := range []struct {
		name  string
		kinds []kind
	}{
		{"reads", []kind{kindQuery, kindGetMore}},
		{"writes", []kind{kindInsert, kindUpdate, kindRemove}},
		{"commands", []kind{kindCommand}},
		{"transactions", nil},
	} {
		micros, count := int64(0), int64(0)
		for _, k := range group.kinds {
			micros += one[k].micros.Load()
			count += one[k].count.Load()
		}
		var part int32
		part, dst = bsoncore.AppendDocumentElementStart(dst, group.name)
		dst = appendFigures(dst, figure{"latency", micros}, figure{"ops", count})
		dst, _ = bsoncore.AppendDocumentEnd(dst, part)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
