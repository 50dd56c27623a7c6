package exec

import (
	"context"
	"sync/atomic"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// targetStream is the documents of one target's cursor, fetched batch by batch. It opens on its first Next.
type targetStream struct {
	exec      *Executor
	target    plan.Target
	command   plan.Command
	batchSize int64        // 0: the backend's own choice
	leftOut   *atomic.Bool // set instead of an error when the backend can't be reached; nil: that is an error

	opened bool
	memory memory.Account // of the batch
	id     int64          // the backend's cursor; 0: none
	batch  bson.Iter
}

// stream returns a stream that is not open yet.
func (e *Executor) stream(t plan.Target) *targetStream {
	return &targetStream{exec: e, target: t, memory: e.Memory.Account(memory.Cursors)}
}

// Next returns the next document, or nil at the end. It is good until the batch after the next one is fetched.
func (s *targetStream) Next(ctx context.Context) (bson.Document, error) {
	if !s.opened {
		if err := s.open(ctx); err != nil {
			return nil, s.leave(err)
		}
	}
	for {
		if s.batch.Next() {
			return s.batch.Value().Data, nil
		}
		if err := s.batch.Err(); err != nil {
			return nil, mongoerr.New(mongoerr.InvalidBSON, "backend %s sent a malformed batch", s.target.Backend)
		}
		if s.id == 0 {
			return nil, nil
		}
		if err := s.more(ctx); err != nil {
			return nil, s.leave(err)
		}
	}
}

// leave ends the stream where its backend can't be reached and the client takes what the others have, as a router does. Otherwise it gives the error back.
func (s *targetStream) leave(err error) error {
	if s.leftOut == nil || !mongoerr.From(err).Code.Retryable() || s.exec.check(s.target) != nil {
		return err // also where it is this gateway that must not read
	}
	s.leftOut.Store(true)
	s.dropBatch()
	s.id = 0
	return nil
}

// open runs the command that makes the cursor.
func (s *targetStream) open(ctx context.Context) error {
	s.opened = true
	if s.target.Logical != "" && s.exec.Gone != nil && s.exec.Gone(s.target) {
		return mongoerr.New(mongoerr.QueryPlanKilled, "a partition of %s was dropped before the cursor reached it", s.target.Logical)
	}
	c := s.command
	switch {
	case c.Name == "aggregate":
		c = c.With(cursorElement(s.batchSize))
	case c.Name == "find" && s.batchSize > 0:
		c = c.With(bsoncore.AppendInt64Element(nil, "batchSize", s.batchSize))
	}
	reply, err := s.exec.send(ctx, &s.memory, s.target, c)
	if err != nil {
		return err
	}
	return s.take(reply)
}

// cursorElement is aggregate's cursor option.
func cursorElement(batchSize int64) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(nil, "cursor")
	if batchSize > 0 {
		dst = bsoncore.AppendInt64Element(dst, "batchSize", batchSize)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// more fetches the next batch.
func (s *targetStream) more(ctx context.Context) error {
	if err := s.exec.check(s.target); err != nil {
		return err
	}
	at, body := bsoncore.AppendDocumentStart(nil)
	body = bsoncore.AppendInt64Element(body, "getMore", s.id)
	body = bsoncore.AppendStringElement(body, "collection", s.target.Namespace.Collection)
	if s.batchSize > 0 {
		body = bsoncore.AppendInt64Element(body, "batchSize", s.batchSize)
	}
	body = bsoncore.AppendStringElement(body, "$db", s.target.Namespace.Database)
	body, _ = bsoncore.AppendDocumentEnd(body, at)
	s.dropBatch()
	reply, err := s.exec.Run(ctx, s.target.Backend, &backend.Request{Body: body, Memory: &s.memory})
	if err != nil {
		s.memory.Close()
		return err
	}
	return s.take(reply)
}

// take makes a reply's batch the current one. A reply with an error ends the backend's cursor.
func (s *targetStream) take(reply bson.Document) error {
	c, err := backend.ParseCursorReply(reply)
	if err != nil {
		s.memory.Close()
		s.id = 0
		return s.exec.refused(s.target, err)
	}
	s.id, s.batch = c.ID, bson.Elements(c.Batch)
	return nil
}

// Close kills the backend's cursor.
func (s *targetStream) Close() error {
	if s.id == 0 {
		s.dropBatch()
		return nil
	}
	return closed(s)
}

func (s *targetStream) dropBatch() {
	s.batch = bson.Iter{}
	s.memory.Close()
}

func (s *targetStream) kill(ctx context.Context) error {
	s.dropBatch()
	if s.id == 0 {
		return nil
	}
	at, body := bsoncore.AppendDocumentStart(nil)
	body = bsoncore.AppendStringElement(body, "killCursors", s.target.Namespace.Collection)
	ids := bsoncore.NewArrayBuilder().AppendInt64(s.id).Build()
	body = bsoncore.AppendArrayElement(body, "cursors", ids)
	body = bsoncore.AppendStringElement(body, "$db", s.target.Namespace.Database)
	body, _ = bsoncore.AppendDocumentEnd(body, at)
	s.id = 0
	_, err := s.exec.Run(ctx, s.target.Backend, &backend.Request{Body: body})
	return err
}
