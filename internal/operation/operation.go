package operation

import (
	"strings"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/query"
)

// Operation is one operation that a member runs.
type Operation struct {
	Member    string     // the host that runs it
	ID        bson.Value // its opid there: a number, on a router of a sharded cluster a text
	Kind      string     // one of the kinds below, or the name of its command
	Namespace string     // database.collection
	Age       time.Duration
	Plan      string // planSummary, such as "COLLSCAN" or "IXSCAN { time: 1 }"; "": not reported
	Examined  int64  // documents that it has read so far; -1: not reported
	Client    string
	App       string
	User      string
	Comment   string // "": none, or no text
	Shape     string // what it asks for, without its values
	Internal  string // what it is where it is no application's own; "" where it is
	Killed    bool   // it was killed before and has not ended yet

	Filter, Sort bson.Document // what it asks for; nil: nothing, or it is not shown whole
	Hidden       bool          // what it asks for is not shown
}

// The kinds that read or change many documents. Others are named by their command.
const (
	Remove    = "remove"
	Update    = "update"
	Find      = "find"
	Count     = "count"
	Aggregate = "aggregate"
)

// Kinds are those that an index may be missing for.
var Kinds = []string{Remove, Update, Find, Count, Aggregate}

// Parse reads one document of $currentOp (https://www.mongodb.com/docs/manual/reference/operator/aggregation/currentOp/#output-fields).
func Parse(member string, doc bson.Document) Operation {
	o := Operation{Member: member, Examined: -1}
	var command, origin, cursor bson.Document
	var op, description, message string
	var active, hasClient bool
	it := bson.Elements(doc)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "opid":
			o.ID = v
		case "op":
			op = text(v)
		case "ns":
			o.Namespace = text(v)
		case "microsecs_running":
			n, _ := v.AsInt64OK()
			o.Age = time.Duration(n) * time.Microsecond
		case "secs_running":
			if n, _ := v.AsInt64OK(); o.Age == 0 {
				o.Age = time.Duration(n) * time.Second
			}
		case "planSummary":
			o.Plan = text(v)
		case "docsExamined":
			o.Examined, _ = v.AsInt64OK()
		case "client", "client_s":
			o.Client, hasClient = text(v), true
		case "appName":
			o.App = text(v)
		case "effectiveUsers":
			o.User = firstUser(v)
		case "desc":
			description = text(v)
		case "msg":
			message = text(v)
		case "active":
			active = v.Type != bson.TypeBoolean || v.Boolean()
		case "killPending":
			o.Killed = v.Type == bson.TypeBoolean && v.Boolean()
		case "command":
			command, _ = v.DocumentOK()
		case "cursor":
			cursor, _ = v.DocumentOK()
		case "originatingCommand":
			origin, _ = v.DocumentOK()
		}
	}
	if from, ok := bson.Get(cursor, "originatingCommand"); ok {
		origin, _ = from.DocumentOK()
	}
	if op == "getmore" && origin != nil {
		op, command = "", origin
	}
	o.read(op, command)
	o.Internal = internal(&o, command, cursor, description, message, active, hasClient)
	return o
}

// read takes the command apart. A server shows a statement of an update or delete by itself, as {q, u, multi} and {q, limit}; Oxbow shows the command.
func (o *Operation) read(op string, command bson.Document) {
	name, _, _ := bson.First(command)
	switch op {
	case "remove", "update":
		o.Kind = op
	case "query":
		o.Kind = Find
	default:
		o.Kind = kindOf(name, op)
	}
	if comment, ok := bson.Get(command, "comment"); ok {
		o.Comment = text(comment)
	}
	at := command
	switch o.Kind {
	case Remove:
		at = firstOf(command, "deletes")
	case Update:
		at = firstOf(command, "updates")
	case Aggregate:
		o.readPipeline(command)
		return
	}
	filter, has := bson.Get(at, map[string]string{Remove: "q", Update: "q", Find: "filter"}[o.Kind])
	if !has {
		filter, has = bson.Get(at, "query")
	}
	sort, _ := bson.Get(at, "sort")
	o.Filter, _ = filter.DocumentOK()
	o.Sort, _ = sort.DocumentOK()
	if _, cut := bson.Get(command, "$truncated"); cut || !has && (o.Kind == Remove || o.Kind == Update) {
		o.Hidden, o.Shape = true, "(not shown)"
		return
	}
	switch o.Kind {
	case Remove, Update, Find, Count, "distinct", "findAndModify":
		o.Shape = string(query.AppendShape(nil, o.Filter))
		if o.Sort != nil {
			o.Shape += " sort " + string(query.AppendShape(nil, o.Sort))
		}
	default:
		o.Shape = name
	}
}

func kindOf(command, op string) string {
	switch command {
	case "delete":
		return Remove
	case "findandmodify":
		return "findAndModify"
	case "":
		return op
	}
	return command
}

// firstOf returns the first statement of a command, or the command itself where it is one statement.
func firstOf(command bson.Document, statements string) bson.Document {
	list, ok := bson.Get(command, statements)
	if !ok {
		return command
	}
	_, first, _ := bson.First(list.Data)
	doc, _ := first.DocumentOK()
	return doc
}

// readPipeline takes what a pipeline matches and sorts by first, and the names of its stages.
func (o *Operation) readPipeline(command bson.Document) {
	pipeline, _ := bson.Get(command, "pipeline")
	if pipeline.Type != bson.TypeArray {
		o.Hidden, o.Shape = true, "(not shown)"
		return
	}
	var parts []string
	it := bson.Elements(pipeline.Data)
	for i := 0; it.Next(); i++ {
		stage, argument, _ := bson.First(it.Value().Data)
		doc, _ := argument.DocumentOK()
		switch {
		case stage == "$match" && i == 0:
			o.Filter = doc
			parts = append(parts, stage+" "+string(query.AppendShape(nil, doc)))
			continue
		case stage == "$sort" && (i == 0 || i == 1 && o.Filter != nil):
			o.Sort = doc
		}
		parts = append(parts, stage)
	}
	o.Shape = strings.Join(parts, ", ")
}

func firstUser(v bson.Value) string {
	if v.Type != bson.TypeArray {
		return ""
	}
	_, first, _ := bson.First(v.Data)
	user, _ := bson.Get(first.Data, "user")
	return text(user)
}

func text(v bson.Value) string {
	s, _ := v.StringValueOK()
	return s
}

// Number is the opid as text.
func (o *Operation) Number() string {
	if n, ok := o.ID.AsInt64OK(); ok {
		return bson.Int64(n).String()
	}
	return text(o.ID)
}

// same reports whether two are one operation, seen twice: ids are used again after a while.
func (o *Operation) same(other *Operation) bool {
	return o.Member == other.Member && o.Number() == other.Number() && o.Kind == other.Kind && o.Namespace == other.Namespace
}

// Scans reports whether it is known to read its collection as a whole.
func (o *Operation) Scans() bool { return strings.HasPrefix(o.Plan, "COLLSCAN") }

// Collection takes the namespace apart.
func (o *Operation) Collection() (database, collection string) {
	database, collection, _ = strings.Cut(o.Namespace, ".")
	return database, collection
}
