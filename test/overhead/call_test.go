package overhead

import (
	"encoding/binary"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
)

// Documents are about 200 bytes, numbered: the number is the end of the _id, and gives time and dev. Those up to stored are there from the start.
const (
	stored  = 20_000
	batch   = 1000
	devices = 5000
)

// began is the time of the first document; the others lie within the hour.
var began = time.Now().Truncate(time.Hour).Unix()

func timeOf(n int) int64 { return began + int64(n%3600) }
func devOf(n int) int32  { return int32(n * 7919 % devices) }

func document(id driver.ObjectID, n int) bson.Document {
	return marshal(driver.D{
		{Key: "_id", Value: id},
		{Key: "time", Value: timeOf(n)},
		{Key: "dev", Value: devOf(n)},
		{Key: "text", Value: "request handled by worker, all replicas answered in time, nothing to report but this line of text, which goes on"},
		{Key: "level", Value: int32(n % 5)},
		{Key: "took", Value: int64(0)},
	})
}

// owner is the part of an _id that tells who made it; 0 for the documents that are there from the start.
func idOf(owner uint32, n int) (id driver.ObjectID) {
	binary.BigEndian.PutUint32(id[:], owner)
	binary.BigEndian.PutUint64(id[4:], uint64(n))
	return id
}

// numbered is where a document's or filter's numbers lie in a message.
type numbered struct{ id, time, dev []byte }

func numbersIn(doc bson.Document) numbered {
	field := func(name string) []byte {
		v, _ := bson.Get(doc, name)
		return v.Data
	}
	return numbered{field("_id"), field("time"), field("dev")}
}

func (f numbered) set(owner uint32, n int) {
	id := idOf(owner, n)
	copy(f.id, id[:])
	if f.time != nil {
		binary.LittleEndian.PutUint64(f.time, uint64(timeOf(n)))
	}
	if f.dev != nil {
		binary.LittleEndian.PutUint32(f.dev, uint32(devOf(n)))
	}
}

// call is an operation of one client as a message, of which a few bytes differ from time to time.
type call struct {
	message   []byte
	owner     uint32 // of what it inserts; nobody else's
	fresh     bool   // every time with documents of its own, and not those that are stored
	numbers   []numbered
	txnNumber []byte
	n, txn    int
	documents int // in one call
	least     int // bytes of a reply that is right
}

// vary makes the message the next one.
func (c *call) vary() {
	if c.txnNumber != nil {
		c.txn++
		binary.LittleEndian.PutUint64(c.txnNumber, uint64(c.txn))
	}
	for _, f := range c.numbers {
		c.n++
		if c.fresh {
			f.set(c.owner, c.n)
		} else {
			f.set(0, c.n*7919%stored+1)
		}
	}
}

// operation makes a client's call, on a collection, with the filter that one of a layout ("plain", "time", "hash") would need.
type operation func(collection, layout string, owner uint32) *call

// common is what drivers send with each command: session and database, and the transaction number of a retryable write.
func common(owner uint32, writes bool) driver.D {
	var session [16]byte
	binary.BigEndian.PutUint32(session[:], owner)
	fields := driver.D{{Key: "lsid", Value: driver.D{{Key: "id", Value: driver.Binary{Subtype: 4, Data: session[:]}}}}}
	if writes {
		fields = append(fields, driver.E{Key: "txnNumber", Value: int64(0)})
	}
	return append(fields, driver.E{Key: "$db", Value: "fla"})
}

// pointFilter fixes a document's _id and, where the collection has a layout, its partition.
func pointFilter(layout string) driver.D {
	filter := driver.D{{Key: "_id", Value: driver.ObjectID{}}}
	switch layout {
	case "time":
		filter = append(filter, driver.E{Key: "time", Value: int64(0)})
	case "hash":
		filter = append(filter, driver.E{Key: "dev", Value: int32(0)})
	}
	return filter
}

// find is a point read.
func find(collection, layout string, owner uint32) *call {
	m, in, _ := message(marshal(append(driver.D{
		{Key: "find", Value: collection}, {Key: "filter", Value: pointFilter(layout)},
		{Key: "limit", Value: int64(1)}, {Key: "singleBatch", Value: true},
	}, common(owner, false)...)), "", nil)
	filter, _ := bson.Get(in, "filter")
	return &call{message: m, owner: owner, n: int(owner) * 1000, numbers: []numbered{numbersIn(filter.Data)}, documents: 1, least: 200}
}

// updateOne adds to a field of one document.
func updateOne(collection, layout string, owner uint32) *call {
	m, in, of := message(marshal(append(driver.D{{Key: "update", Value: collection}, {Key: "ordered", Value: true}}, common(owner, true)...)),
		"updates", []bson.Document{marshal(driver.D{{Key: "q", Value: pointFilter(layout)}, {Key: "u", Value: driver.D{{Key: "$inc", Value: driver.D{{Key: "took", Value: int64(1)}}}}}})})
	filter, _ := bson.Get(of[0], "q")
	txn, _ := bson.Get(in, "txnNumber")
	return &call{message: m, owner: owner, n: int(owner) * 1000, numbers: []numbered{numbersIn(filter.Data)}, txnNumber: txn.Data, documents: 1}
}

// insertOf inserts documents at a time.
func insertOf(documents int, ordered bool) operation {
	return func(collection, _ string, owner uint32) *call {
		docs := make([]bson.Document, documents)
		for i := range docs {
			docs[i] = document(driver.ObjectID{}, i)
		}
		m, in, of := message(marshal(append(driver.D{{Key: "insert", Value: collection}, {Key: "ordered", Value: ordered}}, common(owner, true)...)), "documents", docs)
		txn, _ := bson.Get(in, "txnNumber")
		c := &call{message: m, owner: owner, fresh: true, txnNumber: txn.Data, documents: documents}
		for _, doc := range of {
			c.numbers = append(c.numbers, numbersIn(doc))
		}
		return c
	}
}
