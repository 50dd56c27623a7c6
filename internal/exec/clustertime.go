package exec

import (
	"encoding/binary"
	"slices"
	"sync/atomic"

	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Timestamp is a BSON timestamp as one number: seconds since 1970 in its upper half, a counter in the lower.
type Timestamp = uint64

func timestamp(v bson.Value) (Timestamp, bool) {
	seconds, counter, ok := v.TimestampOK()
	return Timestamp(seconds)<<32 | Timestamp(counter), ok
}

func timestampOf(doc bson.Document, key string) (Timestamp, bool) {
	v, _ := bson.Get(doc, key)
	return timestamp(v)
}

func textOf(doc bson.Document, key string) string {
	v, _ := bson.Get(doc, key)
	s, _ := v.StringValueOK()
	return s
}

// clusterTimeOf is the time in a $clusterTime, whose other half is a signature that only servers can make.
func clusterTimeOf(doc bson.Document) Timestamp {
	at, _ := timestampOf(doc, "clusterTime")
	return at
}

// newer returns the newer of two $clusterTime documents, either of which may be nil.
func newer(a, b bson.Document) bson.Document {
	if clusterTimeOf(b) > clusterTimeOf(a) {
		return b
	}
	return a
}

// Clocks are the newest cluster times that a gateway has heard of deployments. Safe for concurrent use; nil keeps none.
type Clocks struct {
	by map[string]*atomic.Pointer[bson.Document]
}

// NewClocks returns the clocks of the deployments of these names.
func NewClocks(names []string) *Clocks {
	c := &Clocks{by: make(map[string]*atomic.Pointer[bson.Document], len(names))}
	for _, name := range names {
		c.by[name] = new(atomic.Pointer[bson.Document])
	}
	return c
}

// Of returns the newest $clusterTime of a deployment, or nil.
func (c *Clocks) Of(name string) bson.Document {
	if c == nil || c.by[name] == nil {
		return nil
	}
	if known := c.by[name].Load(); known != nil {
		return *known
	}
	return nil
}

// Advance notes the $clusterTime of a deployment's reply; nil and older ones change nothing.
func (c *Clocks) Advance(name string, heard bson.Document) {
	if c == nil || c.by[name] == nil || heard == nil {
		return
	}
	for {
		known := c.by[name].Load()
		if known != nil && clusterTimeOf(heard) <= clusterTimeOf(*known) {
			return
		}
		kept := slices.Clone(heard)
		if c.by[name].CompareAndSwap(known, &kept) {
			return
		}
	}
}

// amendment is what becomes of a command's body on its way out.
type amendment struct {
	concern, clusterTime    bson.Document // in place of the body's own; nil: none
	otherConcern, otherTime bool
	elements                []byte // behind all others
}

func (a *amendment) replaceConcern(concern bson.Document) { a.concern, a.otherConcern = concern, true }

func (a *amendment) replaceClusterTime(doc bson.Document) { a.clusterTime, a.otherTime = doc, true }

func (a *amendment) empty() bool { return !a.otherConcern && !a.otherTime && len(a.elements) == 0 }

// apply returns a copy of the body, amended.
func (a *amendment) apply(body bson.Document) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(body)+len(a.elements)+len(a.concern)+len(a.clusterTime)+32))
	it := bson.Elements(body)
	for it.Next() {
		if a.otherConcern && string(it.Key()) == "readConcern" || a.otherTime && string(it.Key()) == "$clusterTime" {
			continue
		}
		dst = append(dst, it.Raw()...)
	}
	if a.concern != nil {
		dst = bsoncore.AppendDocumentElement(dst, "readConcern", a.concern)
	}
	if a.clusterTime != nil {
		dst = bsoncore.AppendDocumentElement(dst, "$clusterTime", a.clusterTime)
	}
	dst, _ = bsoncore.AppendDocumentEnd(append(dst, a.elements...), at)
	return dst
}

// after returns a read concern, nil for none, that waits for an operation time.
func after(concern bson.Document, at Timestamp) bson.Document {
	start, dst := bsoncore.AppendDocumentStart(nil)
	it := bson.Elements(concern)
	for concern != nil && it.Next() {
		if string(it.Key()) != "afterClusterTime" {
			dst = append(dst, it.Raw()...)
		}
	}
	dst = bsoncore.AppendTimestampElement(dst, "afterClusterTime", uint32(at>>32), uint32(at))
	dst, _ = bsoncore.AppendDocumentEnd(dst, start)
	return dst
}

// without takes fields out of a reply, in the reply's own bytes: what is behind them moves forward.
func without(reply bson.Document, fields ...string) bson.Document {
	dst := reply[:4]
	it := bson.Elements(reply)
	for it.Next() {
		if !slices.ContainsFunc(fields, func(f string) bool { return f == string(it.Key()) }) {
			dst = append(dst, it.Raw()...)
		}
	}
	dst = append(dst, 0)
	binary.LittleEndian.PutUint32(dst, uint32(len(dst)))
	return dst
}
