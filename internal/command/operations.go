package command

import (
	"context"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/cursor"
	"oxbow/internal/mongoerr"
)

// Operations are the running commands. Safe for concurrent use.
type Operations struct {
	killAbandoned bool // also commands that change documents

	mu struct {
		sync.Mutex
		lastID  int32
		running map[int32]*Operation
		conns   map[*Conn]bool
	}
}

// Operation is one running command. Its fields are guarded by the lock of its Operations.
type Operation struct {
	id         int32
	name       string
	namespace  string
	command    bson.Document   // aliases the request, as statements do: good while the operation is registered
	statements []bson.Document // of an update or delete that brings them beside its body
	conn       *Conn
	started    time.Time
	cancel     context.CancelCauseFunc
	goesOn     bool // when its client is gone
	unlisted   bool
	killed     bool

	session    cursor.SessionID
	hasSession bool
	passing    bool // the command is no use of its session
	secret     bool // its body is not shown
}

func newOperations(killAbandoned bool) *Operations {
	o := &Operations{killAbandoned: killAbandoned}
	o.mu.running = make(map[int32]*Operation)
	o.mu.conns = make(map[*Conn]bool)
	return o
}

// begin registers a command. A connection runs one at a time, so its record lies in the connection.
func (o *Operations) begin(req *Request, entry *Entry, secret bool, now time.Time, cancel context.CancelCauseFunc) *Operation {
	op := &req.Conn.operation
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.lastID++
	if o.mu.lastID <= 0 {
		o.mu.lastID = 1
	}
	*op = Operation{
		id: o.mu.lastID, name: req.Name, namespace: namespaceOf(req, entry), command: req.Body, statements: shownStatements(req), conn: req.Conn,
		started: now, cancel: cancel, goesOn: o.goesOn(req, entry), unlisted: entry.Unlisted,
		session: req.session, hasSession: req.Session != nil, passing: entry.NoSession,
		secret: secret,
	}
	o.mu.running[op.id] = op
	return op
}

// goesOn reports whether a command runs to its end when its client is gone: one that writes, as in MongoDB. Where abandoned commands are killed, still
// what changes more than documents, which would be half there, and a write whose client never waits for it.
func (o *Operations) goesOn(req *Request, entry *Entry) bool {
	if !entry.Writes || !o.killAbandoned {
		return entry.Writes
	}
	switch req.Name {
	case "insert", "update", "delete", "findAndModify":
		w, ok := bson.Get(req.WriteConcern, "w")
		n, isNumber := w.AsInt64OK()
		return ok && isNumber && n == 0
	}
	return true
}

// namespaceOf is how currentOp names what a command works on: db.collection, or db.$cmd where it names none.
func namespaceOf(req *Request, entry *Entry) string {
	if entry.NoSession || entry.AdminOnly || entry.NoTarget {
		return req.Database + ".$cmd"
	}
	v := req.Argument
	if req.Name == "getMore" {
		v, _ = bson.Get(req.Body, "collection")
	}
	if v.Type != bson.TypeString {
		return req.Database + ".$cmd"
	}
	if collection := same(&req.names().collection, v); collection != "" {
		return req.names().of(req.Database, collection)
	}
	return req.Database + ".$cmd"
}

func (o *Operations) end(op *Operation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.mu.running, op.id)
	*op = Operation{}
}

// Kill interrupts a running command, if it's one that may be, and reports whether it was.
func (o *Operations) Kill(id int32, may func(*Conn) bool) bool {
	return o.killWhere(func(op *Operation) bool { return op.id == id && may(op.conn) }) > 0
}

// Runs reports whether there is a running command of that id.
func (o *Operations) Runs(id int32) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.mu.running[id] != nil
}

func (o *Operations) killWhere(match func(*Operation) bool) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	for _, op := range o.mu.running {
		if match(op) {
			op.killed = true
			op.cancel(mongoerr.New(mongoerr.Interrupted, "operation was interrupted"))
			n++
		}
	}
	return n
}

// killSessions interrupts the commands of sessions, but for the one that runs on the connection of whoever asks.
func (o *Operations) killSessions(match func(cursor.SessionID) bool, asker *Conn) {
	o.killWhere(func(op *Operation) bool {
		return op.hasSession && match(op.session) && op.conn != asker
	})
}

// sessions are those of the running commands that count as a use of theirs.
func (o *Operations) sessions() []cursor.SessionID {
	o.mu.Lock()
	defer o.mu.Unlock()
	var out []cursor.SessionID
	for _, op := range o.mu.running {
		if op.hasSession && !op.passing {
			out = append(out, op.session)
		}
	}
	return out
}

// Abandonable reports whether a command that ends with its client has run on the connection since before the time: one whose client is worth
// looking after.
func (o *Operations) Abandonable(c *Conn, before time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	op := &c.operation
	return op.id != 0 && !op.goesOn && op.started.Before(before)
}

// Abandon interrupts the command of a connection whose client is gone, unless it goes on to its end.
func (o *Operations) Abandon(c *Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if op := &c.operation; op.id != 0 && !op.goesOn {
		op.cancel(mongoerr.New(mongoerr.ClientDisconnect, "operation was interrupted because a client disconnected"))
	}
}

// Running returns the number of running commands.
func (o *Operations) Running() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.mu.running)
}

// shownCommand is the largest command that currentOp shows whole, in bytes; shownStatement is what one more of its statements needs beside itself.
const (
	shownCommand   = 1 << 10
	shownStatement = 16
)

// Connect puts a connection on the list.
func (o *Operations) Connect(c *Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.conns[c] = true
}

// Disconnect takes a connection off the list.
func (o *Operations) Disconnect(c *Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.mu.conns, c)
}

// documents is the list of the running commands as currentOp gives it, and of the idle connections where wanted, of the connections that may be seen. Of
// the cursors those are shown whose next batch is being fetched.
func (o *Operations) documents(now time.Time, host string, idle bool, may func(*Conn) bool, cursors []cursor.Info) []bson.Document {
	o.mu.Lock()
	defer o.mu.Unlock()
	var docs []bson.Document
	for _, op := range o.mu.running {
		if !op.unlisted && may(op.conn) {
			docs = append(docs, op.document(now, host, cursors))
		}
	}
	if !idle {
		return docs
	}
	for c := range o.mu.conns {
		if (c.operation.id == 0 || c.operation.unlisted) && may(c) {
			docs = append(docs, c.idleDocument(host))
		}
	}
	return docs
}

func (c *Conn) idleDocument(host string) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "type", "op")
	dst = bsoncore.AppendStringElement(dst, "host", host)
	dst = c.append(dst)
	dst = bsoncore.AppendBooleanElement(dst, "active", false)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// append appends who the client of a connection is.
func (c *Conn) append(dst []byte) []byte {
	dst = bsoncore.AppendStringElement(dst, "desc", "conn"+itoa(c.ID))
	dst = bsoncore.AppendInt64Element(dst, "connectionId", c.ID)
	dst = bsoncore.AppendStringElement(dst, "client", c.Remote)
	if who := c.who.Load(); who != nil {
		dst = appendDocuments(dst, "effectiveUsers", []bson.Document{nameDocument("user", who.Name, who.Database)})
	}
	return appendMetadata(dst, c.metadata.Load())
}

func (op *Operation) document(now time.Time, host string, cursors []cursor.Info) bson.Document {
	running := now.Sub(op.started)
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "type", "op")
	dst = bsoncore.AppendStringElement(dst, "host", host)
	dst = op.conn.append(dst)
	dst = bsoncore.AppendBooleanElement(dst, "active", true)
	dst = bsoncore.AppendStringElement(dst, "currentOpTime", now.UTC().Format("2006-01-02T15:04:05.000+00:00"))
	dst = bsoncore.AppendInt32Element(dst, "opid", op.id)
	dst = bsoncore.AppendInt64Element(dst, "secs_running", seconds(running))
	dst = bsoncore.AppendInt64Element(dst, "microsecs_running", running.Microseconds())
	dst = bsoncore.AppendStringElement(dst, "op", kindNames[kindOf(op.name)].operation)
	dst = bsoncore.AppendStringElement(dst, "ns", op.namespace)
	if op.secret {
		dst = appendName(dst, "command", op.command)
	} else {
		dst = appendCommand(dst, "command", op.whole())
	}
	if lsid, ok := bson.Get(op.command, "lsid"); ok {
		dst = bsoncore.AppendValueElement(dst, "lsid", lsid)
	}
	if op.name == "getMore" {
		dst = op.appendCursor(dst, cursors)
	}
	dst = bsoncore.AppendBooleanElement(dst, "killPending", op.killed)
	dst = bsoncore.AppendInt32Element(dst, "numYields", 0)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// appendCursor appends the command that opened the cursor of a getMore, which tells what that is about.
func (op *Operation) appendCursor(dst []byte, cursors []cursor.Info) []byte {
	_, v, _ := bson.First(op.command)
	id, _ := v.AsInt64OK()
	for _, i := range cursors {
		if i.ID == id && i.Command != nil {
			at, dst := bsoncore.AppendDocumentElementStart(dst, "cursor")
			dst = bsoncore.AppendInt64Element(dst, "cursorId", id)
			dst = bsoncore.AppendDocumentElement(dst, "originatingCommand", i.Command)
			dst, _ = bsoncore.AppendDocumentEnd(dst, at)
			return dst
		}
	}
	return dst
}

// shownStatements are the statements that tell what a command is about.
func shownStatements(req *Request) []bson.Document {
	if kind := kindOf(req.Name); kind != kindUpdate && kind != kindRemove {
		return nil
	}
	docs, _ := req.Sequence(kindNames[kindOf(req.Name)].statements)
	return docs
}

// whole is the command with the first of its statements in the place where a body has them, as many as can be shown.
func (op *Operation) whole() bson.Document {
	if len(op.statements) == 0 || len(op.command) > shownCommand {
		return op.command
	}
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = append(dst, op.command[4:len(op.command)-1]...)
	var list int32
	list, dst = bsoncore.AppendArrayElementStart(dst, kindNames[kindOf(op.name)].statements)
	for i, s := range op.statements {
		if i > 0 && len(dst)+len(s)+shownStatement > shownCommand {
			break
		}
		dst = bsoncore.AppendDocumentElement(dst, index(i), s)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, list)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// appendMetadata appends appName and clientMetadata.
func appendMetadata(dst []byte, metadata *bson.Document) []byte {
	if metadata == nil {
		return dst
	}
	if v, ok := bson.Get(*metadata, "application"); ok {
		if app, ok := v.DocumentOK(); ok {
			if name, ok := bson.Get(app, "name"); ok {
				dst = bsoncore.AppendValueElement(dst, "appName", name)
			}
		}
	}
	return bsoncore.AppendDocumentElement(dst, "clientMetadata", *metadata)
}

// appendName appends a command's first element only, and of that no more than its key where it's a document, which has been put in the wrong place.
func appendName(dst []byte, key string, command bson.Document) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, key)
	if name, v, ok := bson.First(command); ok {
		if v.Type == bson.TypeString || bson.IsNumber(v.Type) {
			dst = bsoncore.AppendValueElement(dst, name, v)
		} else {
			dst = bsoncore.AppendInt32Element(dst, name, 1)
		}
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// appendCommand appends a command as it is shown: whole where it is small, else its name and how much was left out.
func appendCommand(dst []byte, key string, command bson.Document) []byte {
	if len(command) <= shownCommand {
		return bsoncore.AppendDocumentElement(dst, key, command)
	}
	at, dst := bsoncore.AppendDocumentElementStart(dst, key)
	if name, v, ok := bson.First(command); ok && len(v.Data) < shownCommand {
		dst = bsoncore.AppendValueElement(dst, name, v)
	}
	dst = bsoncore.AppendStringElement(dst, "$truncated", itoa(int64(len(command)))+" bytes")
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
