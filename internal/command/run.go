package command

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Run answers one command. reply.Elements holds what the caller wants in front of the document; Run appends the whole document to it, or
// leaves it and sets reply.Document. There is always an answer.
func (t *Table) Run(ctx context.Context, req *Request, reply *Reply) {
	start := len(reply.Elements)
	reply.Elements = append(reply.Elements, 0, 0, 0, 0)
	req.began, req.ended = t.deps.Now(), time.Time{}
	entry, err := t.dispatch(ctx, req, reply)
	t.deps.Counters.Requests.Add(1)
	if req.ended.IsZero() { // it didn't get as far as its handler
		req.ended = t.deps.Now()
	}
	t.noteDone(req, entry, req.ended.Sub(req.began), err, reply)
	if err != nil {
		t.deps.Counters.UserErrors.Add(1)
		reply.Document, reply.Again = nil, false
		reply.Elements = appendError(reply.Elements[:start+4], mongoerr.From(err))
	} else if reply.Document != nil {
		reply.Elements = reply.Elements[:start]
		if doc, changed := t.settled(reply.Document, entry, req); changed {
			reply.Document = doc
		}
		return
	} else {
		reply.Elements = bsoncore.AppendDoubleElement(reply.Elements, "ok", 1)
	}
	reply.Elements = append(reply.Elements, 0)
	binary.LittleEndian.PutUint32(reply.Elements[start:], uint32(len(reply.Elements)-start))
	if err == nil && (entry == nil || !entry.Writes) {
		return
	}
	if doc, changed := t.settled(reply.Elements[start:], entry, req); changed {
		reply.Elements = append(reply.Elements[:start], doc...)
	}
}

// noteDone tells those who watch that a command is done.
func (t *Table) noteDone(req *Request, entry *Entry, took time.Duration, err error, reply *Reply) {
	if t.observer == nil && t.deps.Slow == 0 {
		return
	}
	code := codeOf(err, reply)
	if t.observer != nil {
		t.observer.Command(req.Name, took, code)
	}
	t.logSlow(req, entry, took, code)
}

// codeOf is the code of a command that answers ok: 0, a backend's own answer among them.
func codeOf(err error, reply *Reply) mongoerr.Code {
	if err != nil {
		return mongoerr.From(err).Code
	}
	if reply.Document == nil {
		return 0
	}
	if ok, _ := bson.Get(reply.Document, "ok"); isTrue(ok) {
		return 0
	}
	code, _ := bson.Get(reply.Document, "code")
	n, _ := code.AsInt64OK()
	return cmp.Or(mongoerr.Code(n), mongoerr.UnknownError)
}

// dispatch finds the command and runs it; the entry is nil when it is not in the table.
func (t *Table) dispatch(ctx context.Context, req *Request, reply *Reply) (*Entry, error) {
	name, argument, ok := bson.First(req.Body)
	if !ok {
		return nil, mongoerr.New(mongoerr.CommandNotFound, "no such command: ''")
	}
	entry := t.byName[name]
	req.Name, req.Argument = name, argument
	if entry != nil {
		req.Name = entry.name
	}
	t.deps.Counters.count(req)
	if err := parseArguments(req); err != nil {
		return entry, err
	}
	if err := t.admit(req, entry); err != nil {
		return entry, err
	}
	if t.topology.draining() {
		return entry, mongoerr.New(mongoerr.ShutdownInProgress, "The server is in quiesce mode and will shut down")
	}
	if t.isNobody(req.Conn) {
		req.Session, req.LSID = nil, nil
	}
	if err := t.authorize(req); err != nil {
		return entry, err
	}
	handler := t.handler(entry, req)
	if handler == nil {
		return nil, mongoerr.New(mongoerr.CommandNotFound, "no such command: '%s'", name)
	}
	if entry == nil {
		entry = &unknownEntry
	}
	req.Writes = entry.Writes
	if err := t.allow(entry, req); err != nil {
		return entry, err
	}
	return entry, t.call(ctx, entry, handler, req, reply)
}

// unknownEntry stands for a command that the table does not have: nothing is known of it, so it may read and write, and hold secrets.
var unknownEntry = Entry{Reads: true, Writes: true, Secret: true}

// secret reports whether nobody else may see a command's body: its own, or that of the command that it explains.
func (t *Table) secret(entry *Entry, req *Request) bool {
	if entry.Secret || req.Name != "explain" {
		return entry.Secret
	}
	inner, _ := req.Argument.DocumentOK()
	name, _, ok := bson.First(inner)
	explained := t.byName[name]
	return ok && (explained == nil || explained.Secret)
}

// handler picks who answers: the first interceptor that takes the request, the command's own handler, the fallback.
func (t *Table) handler(entry *Entry, req *Request) Handler {
	for _, intercept := range t.interceptors[req.Name] {
		if h := intercept(req); h != nil {
			return h
		}
	}
	if entry != nil {
		return entry.Handler
	}
	return t.deps.Fallback
}

// allow checks what the table says of the command.
func (t *Table) allow(entry *Entry, req *Request) error {
	if entry.AdminOnly && req.Database != "admin" {
		return mongoerr.New(mongoerr.Unauthorized, "%s may only be run against the admin database.", req.Name)
	}
	if req.APIStrict && !entry.Stable {
		return mongoerr.New(mongoerr.APIStrictError, "Provided apiStrict:true, but the command %s is not in API Version %s. "+
			"Information on supported commands and migrations in API Version %s can be found at "+
			"https://dochub.mongodb.org/core/manual-versioned-api", req.Name, req.APIVersion, req.APIVersion)
	}
	if req.APIStrict {
		if err := checkStable(req); err != nil {
			return err
		}
	}
	if !entry.Reads && !req.InTransaction {
		if err := checkNoReadConcern(req); err != nil {
			return err
		}
	}
	if err := checkTransaction(entry, req); err != nil {
		return err
	}
	if entry.Fields != nil {
		if err := CheckFields(req, entry.Fields); err != nil {
			return err
		}
	}
	if req.Session != nil && !entry.NoSession {
		return t.deps.Sessions.Touch(*req.Session, t.deps.Now())
	}
	return nil
}

// call runs the handler under a context that killOp, the time limit and the end of the server can end.
func (t *Table) call(ctx context.Context, entry *Entry, handler Handler, req *Request, reply *Reply) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !entry.Awaits {
		var stop context.CancelFunc
		ctx, stop = limited(ctx, req.MaxTime)
		defer stop()
	}
	op := t.operations.begin(req, entry, t.secret(entry, req), req.began, cancel)
	defer t.finish(op, req)
	defer func() {
		if p := recover(); p != nil {
			t.deps.Counters.Panics.Add(1)
			t.deps.Log.Error("command panicked", "command", req.Name, "database", req.Database,
				"panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = mongoerr.New(mongoerr.InternalError, "internal error while running '%s'", req.Name)
		}
	}()
	err = handler(ctx, req, reply)
	if err == nil {
		return nil
	}
	return interrupted(ctx, err)
}

// limited ends a context after a time, 0 for never, with MongoDB's error.
func limited(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if most == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, most, errTimeLimit)
}

var errTimeLimit = mongoerr.New(mongoerr.MaxTimeMSExpired, "operation exceeded time limit")

// finish takes a command off the list of running ones and adds its time to its collection's.
func (t *Table) finish(op *Operation, req *Request) {
	req.ended = t.deps.Now()
	t.usages.add(op.namespace, op.name, req.ended.Sub(op.started))
	t.operations.end(op)
}

// interrupted replaces the error of a handler whose context has ended by what ended it.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	var own *mongoerr.Error
	if errors.As(err, &own) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	var cause *mongoerr.Error
	if errors.As(context.Cause(ctx), &cause) {
		return cause
	}
	return mongoerr.New(mongoerr.Interrupted, "operation was interrupted")
}
