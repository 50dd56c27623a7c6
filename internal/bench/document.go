package bench

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// written is a document that the server has, as far as updates need to know it.
type written struct {
	id   bson.ObjectID
	time int64 // seconds since 1970
}

// writer makes documents and updates; one goroutine uses it.
type writer struct {
	options Options
	random  *rand.Rand
}

func newWriter(o Options, seed uint64) *writer {
	return &writer{o, rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15))}
}

var levels = [...]string{"info", "info", "info", "info", "warn", "error"}

// batch makes n log lines of now.
func (w *writer) batch(n int, now time.Time) ([]bson.Raw, []written) {
	docs, made := make([]bson.Raw, n), make([]written, n)
	for i := range docs {
		at := now
		if w.options.Late > 0 && w.random.IntN(10) == 0 {
			at = now.Add(-time.Duration(w.random.Int64N(int64(w.options.Late))))
		}
		made[i] = written{bson.NewObjectID(), at.Unix()}
		docs[i] = w.line(made[i])
	}
	return docs, made
}

// line is one log line of the size asked for.
func (w *writer) line(of written) bson.Raw {
	at := bsoncore.Value{Type: bsoncore.TypeInt64, Data: bsoncore.AppendInt64(nil, of.time)}
	return Line(w.random, of.id, w.options.TimeField, at, w.options.Devices, w.options.Size)
}

// Line makes a log line of a size, in bytes, that is at least that of its fields without text: when, which device, how grave, handled or not, and text to fill.
func Line(random *rand.Rand, id bson.ObjectID, timeField string, at bsoncore.Value, devices, size int) bson.Raw {
	start, dst := bsoncore.AppendDocumentStart(make([]byte, 0, size+64))
	dst = bsoncore.AppendObjectIDElement(dst, "_id", id)
	dst = bsoncore.AppendValueElement(dst, timeField, at)
	dst = bsoncore.AppendStringElement(dst, "dev", fmt.Sprintf("dev-%06d", random.IntN(devices)))
	dst = bsoncore.AppendStringElement(dst, "level", levels[random.IntN(len(levels))])
	dst = bsoncore.AppendInt32Element(dst, "state", 0)
	const around = len("\x02text\x00") + 4 + 1 + 1 // type, name, length and the string's end; the document's end
	dst = bsoncore.AppendStringElement(dst, "text", Text(random, size-len(dst)-around))
	dst, _ = bsoncore.AppendDocumentEnd(dst, start)
	return dst
}

// prose is what texts are cut from: words in no order, so that they compress as log lines do rather than as noise or as zeros.
var prose = sync.OnceValue(func() string {
	words := strings.Fields("accepted after battery boot bytes channel closed config connection delay device disk door error failed firmware from gateway " +
		"heartbeat humidity in interval is link lost low memory missing ms network of offline ok online open password peer poll port power " +
		"pressure queue reading received reconnect refused restart retry sample sensor sent session signal state temperature timeout to update voltage")
	random := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < 64<<10 {
		if random.IntN(4) == 0 {
			fmt.Fprintf(&b, "%d ", random.IntN(100_000))
			continue
		}
		b.WriteString(words[random.IntN(len(words))])
		b.WriteByte(' ')
	}
	return b.String()
})

// Text returns n bytes of words and numbers, at most 32 KiB.
func Text(random *rand.Rand, n int) string {
	all := prose()
	n = min(max(n, 0), len(all)/2)
	from := random.IntN(len(all) - n)
	return all[from : from+n]
}

// filter finds one document, by its _id alone or with its time.
func (w *writer) filter(of written, kind Kind) bson.Raw {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendObjectIDElement(dst, "_id", of.id)
	if kind == UpdateByIDAndTime {
		dst = bsoncore.AppendInt64Element(dst, w.options.TimeField, of.time)
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// change marks a line as handled.
func (w *writer) change() bson.Raw { return Change(w.random) }

// Change marks a line as handled.
func Change(random *rand.Rand) bson.Raw {
	at, dst := bsoncore.AppendDocumentStart(nil)
	set, dst := bsoncore.AppendDocumentElementStart(dst, "$set")
	dst = bsoncore.AppendInt32Element(dst, "state", 1+random.Int32N(3))
	dst, _ = bsoncore.AppendDocumentEnd(dst, set)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
