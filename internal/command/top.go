package command

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// maxUsages bounds the collections that top keeps; what comes later is not counted, so that a client that makes names up costs nothing.
const maxUsages = 10_000

// usages adds up the time of commands by collection.
type usages struct {
	mu sync.RWMutex
	by map[string]*usage
}

type usage [kinds]struct{ micros, count atomic.Int64 }

func (u *usages) add(namespace, command string, took time.Duration) {
	if strings.HasSuffix(namespace, ".$cmd") {
		return
	}
	u.mu.RLock()
	one := u.by[namespace]
	u.mu.RUnlock()
	if one == nil {
		if one = u.make(namespace); one == nil {
			return
		}
	}
	kind := kindOf(command)
	one[kind].micros.Add(took.Microseconds())
	one[kind].count.Add(1)
}

// make returns the usage of a namespace, which is nil when there are too many, and of what can't be the name of a field or of a metric's label: a
// client may have made up anything.
func (u *usages) make(namespace string) *usage {
	if !utf8.ValidString(namespace) || strings.Contains(namespace, "\x00") {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if one := u.by[namespace]; one != nil {
		return one
	}
	if len(u.by) >= maxUsages {
		return nil
	}
	one := new(usage)
	u.by[namespace] = one
	return one
}

// Usage is what the commands on one collection came to since the start.
type Usage struct {
	Namespace string
	Count     int64
	Took      time.Duration
}

// Usages returns what commands came to by collection, of at most maxUsages collections, in no particular order.
func (t *Table) Usages() []Usage {
	u := &t.usages
	u.mu.RLock()
	defer u.mu.RUnlock()
	out := make([]Usage, 0, len(u.by))
	for name, one := range u.by {
		micros, count := one.total()
		out = append(out, Usage{Namespace: name, Count: count, Took: time.Duration(micros) * time.Microsecond})
	}
	return out
}

func (u *usage) total() (micros, count int64) {
	for kind := range u {
		micros += u[kind].micros.Load()
		count += u[kind].count.Load()
	}
	return micros, count
}

// top gives the time spent by collection, in microseconds, with the kinds of command apart.
func (t *Table) top(_ context.Context, _ *Request, reply *Reply) error {
	u := &t.usages
	u.mu.RLock()
	defer u.mu.RUnlock()
	names := make([]string, 0, len(u.by))
	for name := range u.by {
		names = append(names, name)
	}
	slices.Sort(names)
	at, dst := bsoncore.AppendDocumentElementStart(reply.Elements, "totals")
	dst = bsoncore.AppendStringElement(dst, "note", "all times in microseconds")
	for _, name := range names {
		dst = u.by[name].append(dst, name)
	}
	reply.Elements, _ = bsoncore.AppendDocumentEnd(dst, at)
	return nil
}

func (u *usage) append(dst []byte, namespace string) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, namespace)
	micros, count := u.total()
	dst = appendTimes(dst, "total", micros, count)
	for kind := range u {
		dst = appendTimes(dst, kindNames[kind].top, u[kind].micros.Load(), u[kind].count.Load())
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

func appendTimes(dst []byte, key string, micros, count int64) []byte {
	at, dst := bsoncore.AppendDocumentElementStart(dst, key)
	dst = appendFigures(dst, figure{"time", micros}, figure{"count", count})
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
