package failures

import (
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// hello is what a member tells drivers of itself and its set
// (https://www.mongodb.com/docs/manual/reference/command/hello/).
func (m *member) helloLocked(connection int64) bson.Document {
	var hosts []string
	for _, other := range m.set.members {
		hosts = append(hosts, other.address)
	}
	doc := driver.D{
		{Key: "helloOk", Value: true}, {Key: "isWritablePrimary", Value: m.primary}, {Key: "ismaster", Value: m.primary},
		{Key: "secondary", Value: !m.primary}, {Key: "setName", Value: m.set.name}, {Key: "setVersion", Value: 1}, {Key: "hosts", Value: hosts},
		{Key: "me", Value: m.address}, {Key: "topologyVersion", Value: m.topologyVersionLocked()},
		{Key: "lastWrite", Value: driver.D{{Key: "opTime", Value: driver.D{{Key: "ts", Value: driver.Timestamp{T: 1, I: uint32(len(m.log))}}, {Key: "t", Value: int64(m.lastTermLocked())}}},
			{Key: "lastWriteDate", Value: time.Now()}}},
		{Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48_000_000}, {Key: "maxWriteBatchSize", Value: 100_000},
		{Key: "localTime", Value: time.Now()}, {Key: "logicalSessionTimeoutMinutes", Value: 30}, {Key: "connectionId", Value: connection},
		{Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: m.set.wireVersion()}, {Key: "readOnly", Value: false},
	}
	if m.primary {
		var id driver.ObjectID
		id[10], id[11] = byte(m.term>>8), byte(m.term)
		doc = append(doc, driver.E{Key: "electionId", Value: id}, driver.E{Key: "primary", Value: m.address})
	}
	return marshal(append(doc, driver.E{Key: "ok", Value: 1.0}))
}

// wireVersion is 7.0's, or 4.2's for a set that does not label its errors.
func (s *set) wireVersion() int {
	if s.modern {
		return 21
	}
	return 8
}

func (m *member) topologyVersionLocked() driver.D {
	return driver.D{{Key: "processId", Value: m.processID}, {Key: "counter", Value: m.version}}
}

// errorLocked is an error reply to a command, with the label that makes drivers retry where MongoDB sets it.
func (m *member) errorLocked(code mongoerr.Code, message string, cmd *command) bson.Document {
	doc := driver.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: message}, {Key: "code", Value: int32(code)}, {Key: "codeName", Value: code.String()}}
	if m.set.modern {
		doc = append(doc, driver.E{Key: "topologyVersion", Value: m.topologyVersionLocked()})
	}
	if m.set.labels(cmd) {
		doc = append(doc, driver.E{Key: "errorLabels", Value: []string{"RetryableWriteError"}})
	}
	return marshal(doc)
}

// labels reports whether the set labels a retryable error of a command.
func (s *set) labels(cmd *command) bool {
	_, retries := bson.Get(cmd.body, "txnNumber")
	return s.modern && retries
}

// concernError adds a write concern error to the reply of a write that was done.
func (m *member) concernError(reply bson.Document, code mongoerr.Code, cmd *command) bson.Document {
	failure := driver.D{{Key: "code", Value: int32(code)}, {Key: "codeName", Value: code.String()}, {Key: "errmsg", Value: "not primary while waiting for write concern"}}
	doc := appended(reply, bsoncore.AppendDocumentElement(nil, "writeConcernError", marshal(failure)))
	if m.set.labels(cmd) {
		label := bsoncore.NewArrayBuilder().AppendString("RetryableWriteError").Build()
		doc = appended(doc, bsoncore.AppendArrayElement(nil, "errorLabels", label))
	}
	return doc
}

// statementErrors adds the errors of statements that a write was not done for: the first, or all behind it where they may be tried out of order.
func (m *member) statementErrors(reply bson.Document, code mongoerr.Code, first, last int) bson.Document {
	list := bsoncore.NewArrayBuilder()
	for i := first; i <= last; i++ {
		list.AppendDocument(bsoncore.Document(marshal(driver.D{{Key: "index", Value: int32(i)}, {Key: "code", Value: int32(code)}, {Key: "errmsg", Value: "not primary"}})))
	}
	return appended(without(reply, "writeErrors"), bsoncore.AppendArrayElement(nil, "writeErrors", list.Build()))
}

var okay = driver.D{{Key: "ok", Value: 1.0}}

func marshal(doc driver.D) bson.Document {
	out, err := driver.Marshal(doc)
	if err != nil {
		panic(err) // nothing that a test could cause
	}
	return out
}

// appended returns a document with elements behind its own.
func appended(doc bson.Document, elements []byte) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = append(append(dst, doc[4:len(doc)-1]...), elements...)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// without returns a document without some of its elements.
func without(doc bson.Document, keys ...string) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	it := bson.Elements(doc)
next:
	for it.Next() {
		for _, k := range keys {
			if string(it.Key()) == k {
				continue next
			}
		}
		dst = append(dst, it.Raw()...)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func asksForMajority(body bson.Document) bool {
	concern, _ := bson.Get(body, "writeConcern")
	w, _ := bson.Get(concern.Data, "w")
	s, ok := w.StringValueOK()
	return ok && s == "majority"
}

// levelOf is a command's read concern.
func levelOf(body bson.Document) string {
	concern, _ := bson.Get(body, "readConcern")
	v, _ := bson.Get(concern.Data, "level")
	s, _ := v.StringValueOK()
	return s
}

func allowsSecondary(body bson.Document) bool {
	preference, ok := bson.Get(body, "$readPreference")
	if !ok {
		return false
	}
	mode, _ := bson.Get(preference.Data, "mode")
	s, _ := mode.StringValueOK()
	return s != "primary"
}
