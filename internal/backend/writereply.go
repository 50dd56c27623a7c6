package backend

import (
	"cmp"
	"slices"
	"strconv"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// WriteReply is the reply to an insert, update or delete
// (https://www.mongodb.com/docs/manual/reference/command/update/#output).
type WriteReply struct {
	N            int64
	Modified     int64 // nModified, of an update only
	Upserted     []Upserted
	Errors       []WriteError
	ConcernError bson.Document // writeConcernError, or nil
	Labels       []string      // errorLabels, which belong to it
	RetriedStmts []int32       // statements answered from the record of an earlier try
}

// Upserted is one upsert of an update command: the statement's index and the new document's _id.
type Upserted struct {
	Index int32
	ID    bson.Value
}

// Add adds a part's reply to that of the whole. One write concern error, with its labels, stands for all.
func (r *WriteReply) Add(part *WriteReply) {
	r.N += part.N
	r.Modified += part.Modified
	r.Upserted = append(r.Upserted, part.Upserted...)
	r.Errors = append(r.Errors, part.Errors...)
	r.RetriedStmts = append(r.RetriedStmts, part.RetriedStmts...)
	if r.ConcernError == nil {
		r.ConcernError, r.Labels = part.ConcernError, part.Labels
	}
	slices.SortFunc(r.Errors, func(a, b WriteError) int { return cmp.Compare(a.Index, b.Index) })
	slices.SortFunc(r.Upserted, func(a, b Upserted) int { return cmp.Compare(a.Index, b.Index) })
}

// Renumber gives statements, which are counted from 0, the numbers that they have in the whole.
func (r *WriteReply) Renumber(index []int32) {
	for i := range r.Errors {
		r.Errors[i].Index = index[r.Errors[i].Index]
	}
	for i := range r.Upserted {
		r.Upserted[i].Index = index[r.Upserted[i].Index]
	}
}

// WriteError is the error of one statement.
type WriteError struct {
	Index int32
	Err   *mongoerr.Error
}

// ParseWriteReply reads the reply of a write command. A reply with ok: 0 is returned as its error.
func ParseWriteReply(reply bson.Document) (*WriteReply, error) {
	r := &WriteReply{} // of the caller, into which this is inlined
	if err := r.parse(reply); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *WriteReply) parse(reply bson.Document) error {
	if err := Check(reply); err != nil {
		return err
	}
	it := bson.Elements(reply)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "n":
			r.N, _ = v.AsInt64OK()
		case "nModified":
			r.Modified, _ = v.AsInt64OK()
		case "upserted":
			r.Upserted = parseUpserted(v.Data)
		case "writeErrors":
			r.Errors = parseWriteErrors(v.Data)
		case "writeConcernError":
			r.ConcernError = v.Data
		case "errorLabels":
			r.Labels = stringsOf(v)
		case "retriedStmtIds":
			ids := bson.Elements(v.Data)
			for ids.Next() {
				r.RetriedStmts = append(r.RetriedStmts, ids.Value().AsInt32())
			}
		}
	}
	return it.Err()
}

// Err returns the reply's first error: that of a statement, else that of the write concern, or nil.
func (r *WriteReply) Err() error {
	if len(r.Errors) > 0 {
		return r.Errors[0].Err
	}
	if r.ConcernError == nil {
		return nil
	}
	code, _ := bson.Get(r.ConcernError, "code")
	message, _ := bson.Get(r.ConcernError, "errmsg")
	number, _ := code.AsInt64OK()
	text, _ := message.StringValueOK()
	return mongoerr.New(mongoerr.Code(number), "%s", text)
}

func parseUpserted(array []byte) []Upserted {
	var out []Upserted
	it := bson.Elements(array)
	for it.Next() {
		var u Upserted
		if v, ok := bson.Get(it.Value().Data, "index"); ok {
			u.Index, _ = v.AsInt32OK()
		}
		u.ID, _ = bson.Get(it.Value().Data, "_id")
		out = append(out, u)
	}
	return out
}

func parseWriteErrors(array []byte) []WriteError {
	var out []WriteError
	it := bson.Elements(array)
	for it.Next() {
		e := WriteError{Err: &mongoerr.Error{}}
		info, at := bsoncore.AppendDocumentStart(nil)
		fields := bson.Elements(it.Value().Data)
		for fields.Next() {
			v := fields.Value()
			switch string(fields.Key()) {
			case "index":
				e.Index, _ = v.AsInt32OK()
			case "code":
				n, _ := v.AsInt32OK()
				e.Err.Code = mongoerr.Code(n)
			case "errmsg":
				e.Err.Message, _ = v.StringValueOK()
			default:
				at = append(at, fields.Raw()...)
			}
		}
		if len(at) > 4 {
			e.Err.Info, _ = bsoncore.AppendDocumentEnd(at, info)
		}
		out = append(out, e)
	}
	return out
}

// Append appends the reply's fields, ok included, to a document under construction. update adds nModified.
func (r *WriteReply) Append(dst []byte, update bool) []byte {
	return bsoncore.AppendDoubleElement(r.AppendFields(dst, update), "ok", 1)
}

// AppendFields is Append without ok.
func (r *WriteReply) AppendFields(dst []byte, update bool) []byte {
	dst = bsoncore.AppendInt32Element(dst, "n", int32(r.N))
	if update {
		dst = bsoncore.AppendInt32Element(dst, "nModified", int32(r.Modified))
	}
	if len(r.Upserted) > 0 {
		var at int32
		at, dst = bsoncore.AppendArrayElementStart(dst, "upserted")
		for i, u := range r.Upserted {
			var one int32
			one, dst = bsoncore.AppendDocumentElementStart(dst, strconv.Itoa(i))
			dst = bsoncore.AppendInt32Element(dst, "index", u.Index)
			dst = bsoncore.AppendValueElement(dst, "_id", u.ID)
			dst, _ = bsoncore.AppendDocumentEnd(dst, one)
		}
		dst, _ = bsoncore.AppendArrayEnd(dst, at)
	}
	if len(r.Errors) > 0 {
		var at int32
		at, dst = bsoncore.AppendArrayElementStart(dst, "writeErrors")
		for i, e := range r.Errors {
			dst = e.appendElement(dst, strconv.Itoa(i))
		}
		dst, _ = bsoncore.AppendArrayEnd(dst, at)
	}
	if len(r.RetriedStmts) > 0 {
		var at int32
		at, dst = bsoncore.AppendArrayElementStart(dst, "retriedStmtIds")
		for i, id := range r.RetriedStmts {
			dst = bsoncore.AppendInt32Element(dst, strconv.Itoa(i), id)
		}
		dst, _ = bsoncore.AppendArrayEnd(dst, at)
	}
	if r.ConcernError != nil {
		dst = bsoncore.AppendDocumentElement(dst, "writeConcernError", r.ConcernError)
	}
	return AppendLabels(dst, r.Labels)
}

// AppendLabels appends errorLabels, if there are any.
func AppendLabels(dst []byte, labels []string) []byte {
	if len(labels) == 0 {
		return dst
	}
	at, dst := bsoncore.AppendArrayElementStart(dst, "errorLabels")
	for i, l := range labels {
		dst = bsoncore.AppendStringElement(dst, strconv.Itoa(i), l)
	}
	dst, _ = bsoncore.AppendArrayEnd(dst, at)
	return dst
}

// maxErrorText bounds the messages of one reply, in bytes.
const maxErrorText = 1 << 20

// ShortenErrors keeps the reply of a large failed batch a document: beyond 1 MiB of messages in all, errors keep code and index only, as
// MongoDB's do. The caller's own errors stay as they are.
func (r *WriteReply) ShortenErrors() {
	total := 0
	for i := range r.Errors {
		e := *r.Errors[i].Err
		total += len(e.Message) + len(e.Info)
		if total > maxErrorText {
			e.Message, e.Info = "", nil
			r.Errors[i].Err = &e
		}
	}
}

func (e *WriteError) appendElement(dst []byte, key string) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, key)
	dst = bsoncore.AppendInt32Element(dst, "index", e.Index)
	dst = bsoncore.AppendInt32Element(dst, "code", int32(e.Err.Code))
	dst = bsoncore.AppendStringElement(dst, "errmsg", e.Err.Message)
	if len(e.Err.Info) > 5 {
		dst = append(dst, e.Err.Info[4:len(e.Err.Info)-1]...)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
