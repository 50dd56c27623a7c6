package exec

import (
	"context"
	"slices"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// chooseTries bounds how often a findAndModify chooses again because its document changed between choice and modification.
const chooseTries = 16

// FindAndModify runs a findAndModify and returns the reply of the backend that decided it.
func (e *Executor) FindAndModify(ctx context.Context, p *plan.FindAndModify, o Options) (bson.Document, error) {
	m := modifying{exec: e, plan: p, options: o}
	var reply bson.Document
	var err error
	if p.Choose != nil {
		reply, err = m.chosen(ctx)
	} else {
		reply, err = m.inTurn(ctx)
	}
	if reply == nil && err == nil {
		reply, err = m.unmatched(ctx)
	}
	if err != nil {
		return nil, m.concern.inError(err)
	}
	return m.concern.inReply(reply), nil
}

// modifying is one findAndModify being run.
type modifying struct {
	exec    *Executor
	plan    *plan.FindAndModify
	options Options
	concern concern // of the targets tried so far
}

// inTurn tries the targets one after the other; nil if none had a match.
func (m *modifying) inTurn(ctx context.Context) (bson.Document, error) {
	if len(m.plan.Routed.Targets) > 0 {
		if reply, err := m.earlier(ctx, m.plan.Routed.Targets[0].Backend); reply != nil || err != nil {
			return reply, err
		}
	}
	for i, t := range m.plan.Routed.Targets {
		reply, matched, err := m.modify(ctx, t, m.plan.Command, m.plan.Filter)
		last := i == len(m.plan.Routed.Targets)-1 && m.plan.Guard == nil && m.plan.Upsert == nil
		if err != nil || matched || last {
			return reply, err
		}
	}
	return nil, nil
}

// chosen finds the document that comes first in the order of the sort and modifies it where it lies; nil if there is none.
func (m *modifying) chosen(ctx context.Context) (bson.Document, error) {
	for range chooseTries {
		id, t, err := m.choose(ctx)
		if err != nil {
			return nil, err
		}
		if reply, err := m.earlier(ctx, t.Backend); reply != nil || err != nil || id.Type == 0 {
			return reply, err
		}
		if m.plan.Guard != nil && slices.Contains(m.plan.Guard.Elsewhere, t) {
			return nil, m.plan.Guard.Err
		}
		reply, matched, err := m.modify(ctx, t, m.plan.Command, withID(m.plan.Filter, id))
		if err != nil || matched {
			return reply, err
		}
	}
	return nil, mongoerr.New(mongoerr.WriteConflict, "the document to modify changed %d times while it was being chosen", chooseTries)
}

// earlier is the reply to an earlier try of the command on another deployment than the one that is asked next; nil: there was none.
func (m *modifying) earlier(ctx context.Context, next string) (reply bson.Document, err error) {
	if m.options.Retry == nil || m.plan.Pinned {
		return nil, nil
	}
	targets := m.plan.Routed.Targets
	if u := m.plan.Upsert; u != nil && u.Target != nil {
		targets = append(targets[:len(targets):len(targets)], *u.Target)
	}
	found, err := recorded(targets, next, func(t plan.Target) (found bool, err error) {
		reply, found, err = m.modify(ctx, t, m.plan.Command, nowhere(m.plan.Filter))
		return found, err
	})
	if !found {
		return nil, err
	}
	return reply, nil
}

func (m *modifying) choose(ctx context.Context) (id bson.Value, t plan.Target, err error) {
	s := m.exec.find(m.plan.Choose)
	defer s.Close()
	doc, err := s.Next(ctx)
	if doc == nil || err != nil {
		return id, t, err
	}
	id, _ = bson.Get(doc, "_id")
	return id, s.Target(), nil
}

// unmatched ends a findAndModify that found nothing to modify.
func (m *modifying) unmatched(ctx context.Context) (bson.Document, error) {
	if m.plan.Guard != nil {
		found, err := m.exec.matches(ctx, m.plan.Guard)
		if err != nil {
			return nil, err
		}
		if found {
			return nil, m.plan.Guard.Err
		}
	}
	if u := m.plan.Upsert; u != nil {
		if u.Target == nil {
			return nil, u.Err
		}
		reply, _, err := m.modify(ctx, *u.Target, plan.Command{Name: "findAndModify", Rest: u.Statement}, m.plan.Filter)
		return reply, err
	}
	return nothingModified(m.plan.Remove), nil
}

// modify runs the command on one target and reports whether a document matched. An earlier try that inserted on the target's deployment is answered only to
// who asks for an insert again.
func (m *modifying) modify(ctx context.Context, t plan.Target, c plan.Command, filter bson.Document) (bson.Document, bool, error) {
	reply, matched, err := m.modifyOnce(ctx, t, c, filter)
	if u := m.plan.Upsert; u != nil && mongoerr.Is(err, recordedInsert) {
		return m.modifyOnce(ctx, t, plan.Command{Name: "findAndModify", Rest: u.Statement}, filter)
	}
	return reply, matched, err
}

func (m *modifying) modifyOnce(ctx context.Context, t plan.Target, c plan.Command, filter bson.Document) (bson.Document, bool, error) {
	if filter != nil {
		c = c.With(bsoncore.AppendDocumentElement(nil, "query", filter))
	}
	c = c.With(m.options.append(nil))
	c = c.With(m.options.Retry.appendOne(nil, m.exec.Abilities(t.Backend), scopeOf(m.plan.Pinned, t.Namespace, m.plan.Namespace)))
	reply, err := m.send(ctx, t, c)
	if err != nil {
		return nil, false, err
	}
	if err := backend.Check(reply); err != nil {
		return nil, false, m.exec.refused(t, err)
	}
	part, err := backend.ParseWriteReply(reply)
	if err != nil {
		return nil, false, mongoerr.New(mongoerr.InvalidBSON, "backend %s sent a malformed reply", t.Backend)
	}
	m.concern.note(part)
	last, _ := bson.Get(reply, "lastErrorObject")
	n, _ := bson.Get(last.Data, "n")
	count, _ := n.AsInt64OK()
	return reply, count > 0, nil
}

// send sends the command to a target and returns the reply, ok: 1 or not.
func (m *modifying) send(ctx context.Context, t plan.Target, c plan.Command) (bson.Document, error) {
	body := c.For(t.Namespace)
	sending, limit, err := m.exec.begin(ctx, t, upserts(body))
	if err != nil {
		return nil, err
	}
	if limit > 0 {
		body = c.With(appendLimit(nil, limit)).For(t.Namespace)
	}
	answered := false
	defer func() { sending.End(answered) }()
	reply, err := m.exec.Run(ctx, t.Backend, &backend.Request{Body: body, Existing: m.exec.Abilities(t.Backend).OneBatch})
	answered = err == nil
	return reply, err
}

// withID narrows a filter to one document.
func withID(filter bson.Document, id bson.Value) bson.Document {
	byID, _ := bsoncore.AppendDocumentEnd(bsoncore.AppendValueElement([]byte{0, 0, 0, 0}, "_id", id), 0)
	if _, _, ok := bson.First(filter); !ok {
		return byID
	}
	both := bsoncore.NewArrayBuilder().AppendDocument(byID).AppendDocument(filter).Build()
	out, _ := bsoncore.AppendDocumentEnd(bsoncore.AppendArrayElement([]byte{0, 0, 0, 0}, "$and", both), 0)
	return out
}

// nothingModified is the reply where nothing matched and nothing was to be inserted.
func nothingModified(remove bool) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	last, dst := bsoncore.AppendDocumentElementStart(dst, "lastErrorObject")
	dst = bsoncore.AppendInt32Element(dst, "n", 0)
	if !remove {
		dst = bsoncore.AppendBooleanElement(dst, "updatedExisting", false)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, last)
	dst = bsoncore.AppendNullElement(dst, "value")
	dst = bsoncore.AppendDoubleElement(dst, "ok", 1)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
