package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/cursor"
	"oxbow/internal/exec"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
)

// opsWanted selects what $currentOp lists beside the running commands.
type opsWanted struct {
	idleConnections, idleCursors, idleSessions bool

	own  bool // only those of whoever asks
	from *Conn
}

// may reports whether a connection's commands are wanted.
func (w opsWanted) may(c *Conn) bool { return !w.own || sameUser(c, w.from) }

// owns reports whether what belongs to a session's or cursor's user is wanted.
func (w opsWanted) owns(user string) bool { return !w.own || user == w.from.User }

// currentOp lists the running commands. Fields that are no options are a filter on the list.
func (t *Table) currentOp(_ context.Context, req *Request, reply *Reply) error {
	wanted := opsWanted{from: req.Conn}
	at, filterDoc := bsoncore.AppendDocumentStart(nil)
	filtered := false
	it := bson.Elements(req.Body)
	it.Next()
	for it.Next() {
		switch key := string(it.Key()); {
		case key == "$all":
			wanted.idleConnections = isTrue(it.Value())
		case key == "$ownOps":
			wanted.own = isTrue(it.Value()) && t.deps.Authorize
		case key == "$truncateOps" || generic[key]:
		default:
			filterDoc = append(filterDoc, it.Raw()...)
			filtered = true
		}
	}
	filterDoc, _ = bsoncore.AppendDocumentEnd(filterDoc, at)
	docs := t.operationDocuments(wanted)
	if filtered {
		filter, err := query.ParseFilter(filterDoc, t.env())
		if err != nil {
			return err
		}
		if docs, err = matching(docs, filter); err != nil {
			return err
		}
	}
	reply.Elements = appendDocuments(reply.Elements, "inprog", docs)
	return nil
}

func (t *Table) env() query.Env { return query.Env{NowMillis: t.deps.Now().UnixMilli()} }

// operationDocuments is the list that currentOp and $currentOp give.
func (t *Table) operationDocuments(wanted opsWanted) []bson.Document {
	now, host := t.deps.Now(), t.deps.Server.Host
	infos, _ := t.deps.Cursors.List()
	docs := t.operations.documents(now, host, wanted.idleConnections, wanted.may, infos)
	if wanted.idleCursors {
		for _, i := range infos {
			if !i.InUse && wanted.owns(i.User) {
				docs = append(docs, idleCursor(i, host))
			}
		}
	}
	if wanted.idleSessions {
		for _, s := range t.deps.Sessions.List(func(id cursor.SessionID) bool { return wanted.owns(id.User) }) {
			docs = append(docs, idleSession(s, host))
		}
	}
	return docs
}

func idleCursor(i cursor.Info, host string) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "type", "idleCursor")
	dst = bsoncore.AppendStringElement(dst, "host", host)
	dst = bsoncore.AppendStringElement(dst, "ns", i.Namespace)
	if i.Session != nil {
		dst = appendSessionID(dst, "lsid", *i.Session)
	}
	c, dst := bsoncore.AppendDocumentElementStart(dst, "cursor")
	dst = appendFigures(dst, figure{"cursorId", i.ID}, figure{"nDocsReturned", i.Docs}, figure{"nBatchesReturned", i.Batches})
	dst = bsoncore.AppendDateTimeElement(dst, "createdDate", i.Created.UnixMilli())
	dst = bsoncore.AppendDateTimeElement(dst, "lastAccessDate", i.LastUse.UnixMilli())
	dst = bsoncore.AppendBooleanElement(dst, "noCursorTimeout", i.NoTimeout)
	if i.Command != nil {
		dst = bsoncore.AppendDocumentElement(dst, "originatingCommand", i.Command)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, c)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func idleSession(s cursor.Session, host string) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "type", "idleSession")
	dst = bsoncore.AppendStringElement(dst, "host", host)
	dst = bsoncore.AppendBooleanElement(dst, "active", false)
	dst = appendSessionID(dst, "lsid", s.ID)
	dst = bsoncore.AppendDateTimeElement(dst, "lastUse", s.LastUse.UnixMilli())
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func appendSessionID(dst []byte, key string, id cursor.SessionID) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, key)
	dst = bsoncore.AppendBinaryElement(dst, "id", 4, id.UUID[:])
	if id.User != "" {
		dst = bsoncore.AppendBinaryElement(dst, "uid", 0, []byte(id.User))
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// interceptAggregate takes the aggregations over the gateway itself: those of no collection that begin with $currentOp or
// $listLocalSessions.
func (t *Table) interceptAggregate(req *Request) Handler {
	if !bson.IsNumber(req.Argument.Type) {
		return nil
	}
	switch stage, _, _ := firstStage(req.Body); stage {
	case "$currentOp", "$listLocalSessions":
		return t.aggregateGateway
	}
	return nil
}

// firstStage returns the first stage of an aggregate's pipeline and the array of those behind it.
func firstStage(body bson.Document) (name string, argument bson.Value, rest bson.Array) {
	pipeline, ok := bson.Get(body, "pipeline")
	if !ok || pipeline.Type != bson.TypeArray {
		return "", bson.Value{}, nil
	}
	it := bson.Elements(pipeline.Data)
	if !it.Next() || it.Value().Type != bson.TypeDocument {
		return "", bson.Value{}, nil
	}
	name, argument, _ = bson.First(it.Value().Data)
	at, rest := bsoncore.AppendArrayStart(nil)
	for i := 0; it.Next(); i++ {
		rest = bsoncore.AppendValueElement(rest, index(i), it.Value())
	}
	rest, _ = bsoncore.AppendArrayEnd(rest, at)
	return name, argument, rest
}

func (t *Table) aggregateGateway(ctx context.Context, req *Request, reply *Reply) error {
	if err := CheckFields(req, []string{"pipeline", "cursor", "allowDiskUse", "hint", "let", "collation", "bypassDocumentValidation"}); err != nil {
		return err
	}
	stage, argument, rest := firstStage(req.Body)
	options, ok := argument.DocumentOK()
	if !ok {
		return mongoerr.New(mongoerr.FailedToParse, "The %s stage must be an object, but found: %s", stage, bson.TypeName(argument.Type))
	}
	docs, err := t.gatewayDocuments(stage, options, req)
	if err != nil {
		return err
	}
	if len(rest) > len(emptyDocument) {
		if docs, err = runPipeline(ctx, docs, rest, t.env()); err != nil {
			return err
		}
	}
	return writeCursor(reply, req.Database+".$cmd.aggregate", docs)
}

func (t *Table) gatewayDocuments(stage string, options bson.Document, req *Request) ([]bson.Document, error) {
	wanted := opsWanted{from: req.Conn, own: t.deps.Authorize && !truthy(options, "allUsers")}
	if stage == "$listLocalSessions" {
		return t.sessionDocuments(options, wanted)
	}
	if req.Database != "admin" {
		return nil, mongoerr.New(mongoerr.InvalidNamespace, "$currentOp must be run against the 'admin' database with {aggregate: 1}")
	}
	it := bson.Elements(options)
	for it.Next() {
		key, on := string(it.Key()), isTrue(it.Value())
		switch key {
		case "idleConnections":
			wanted.idleConnections = on
		case "idleCursors":
			wanted.idleCursors = on
		case "idleSessions":
			wanted.idleSessions = on
		case "allUsers", "localOps", "truncateOps", "backtrace", "targetAllNodes":
		default:
			return nil, mongoerr.New(mongoerr.FailedToParse, "Unrecognized option '%s' in $currentOp stage.", key)
		}
	}
	return t.operationDocuments(wanted), nil
}

func (t *Table) sessionDocuments(options bson.Document, wanted opsWanted) ([]bson.Document, error) {
	it := bson.Elements(options)
	for it.Next() {
		if key := string(it.Key()); key != "allUsers" {
			return nil, mongoerr.New(mongoerr.CommandNotSupported, "'$listLocalSessions.%s' is not supported yet", key)
		}
	}
	var docs []bson.Document
	for _, s := range t.deps.Sessions.List(func(id cursor.SessionID) bool { return wanted.owns(id.User) }) {
		at, dst := bsoncore.AppendDocumentStart(nil)
		dst = appendSessionID(dst, "_id", s.ID)
		dst = bsoncore.AppendDateTimeElement(dst, "lastUse", s.LastUse.UnixMilli())
		dst, _ = bsoncore.AppendDocumentEnd(dst, at)
		docs = append(docs, dst)
	}
	return docs, nil
}

func runPipeline(ctx context.Context, docs []bson.Document, stages bson.Array, env query.Env) ([]bson.Document, error) {
	p, err := query.ParsePipeline(stages, query.PipelineOptions{Env: env, MaxBytes: stageBytes})
	if err != nil {
		return nil, err
	}
	out := p.Run(exec.Slice(docs))
	defer out.Close()
	var results []bson.Document
	total := 0
	for {
		doc, err := out.Next(ctx)
		if err != nil || doc == nil {
			return results, err
		}
		if total += len(doc) + 12; total > bson.MaxDocumentSize {
			return nil, errLongList()
		}
		results = append(results, append(bson.Document(nil), doc...))
	}
}

func errLongList() error {
	return mongoerr.New(mongoerr.BSONObjectTooLarge, "the list is larger than %d bytes: filter it", bson.MaxDocumentSize)
}

// writeCursor answers with all documents in the first batch: the gateway's own lists are short.
func writeCursor(reply *Reply, namespace string, docs []bson.Document) error {
	total := 0
	for _, doc := range docs {
		if total += len(doc) + 12; total > bson.MaxDocumentSize {
			return errLongList()
		}
	}
	at, dst := bsoncore.AppendDocumentElementStart(reply.Elements, "cursor")
	dst = appendDocuments(dst, "firstBatch", docs)
	dst = bsoncore.AppendInt64Element(dst, "id", 0)
	dst = bsoncore.AppendStringElement(dst, "ns", namespace)
	reply.Elements, _ = bsoncore.AppendDocumentEnd(dst, at)
	return nil
}
