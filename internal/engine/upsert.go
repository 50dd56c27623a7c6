package engine

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"
	"time"
)

// upsert inserts what an update that found nothing asks for.
func (w *writer) upsert(c *change) error {
	doc, err := c.update.Upsert(nil, newObjectID())
	if err != nil {
		return err
	}
	id, err := checkInsert(doc)
	if err != nil {
		return err
	}
	record := w.session.newRecord()
	result := Result{Upserted: id}
	if c.image == ReturnNew {
		result.Document = doc
	}
	if record != nil {
		record.statement, record.result = c.write.Statement, result
	}
	if err := w.insertOne(c.write, doc, id, record); err != nil {
		return err
	}
	*c.result = result
	return nil
}

// The parts of the _ids of upserts: 4 bytes of seconds, 5 of this process, 3 of a counter
// (https://www.mongodb.com/docs/manual/reference/bson-types/#objectid).
var (
	objectIDProcess = func() (p [5]byte) {
		_, _ = rand.Read(p[:]) // never fails
		return p
	}()
	objectIDCounter atomic.Uint32
)

func newObjectID() (id [12]byte) {
	binary.BigEndian.PutUint32(id[:], uint32(time.Now().Unix()))
	copy(id[4:], objectIDProcess[:])
	n := objectIDCounter.Add(1)
	id[9], id[10], id[11] = byte(n>>16), byte(n>>8), byte(n)
	return id
}
