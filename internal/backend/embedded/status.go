package embedded

import (
	"os"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// serverStatus reports what this backend knows of itself; the gateway adds what it knows of connections and commands
// (https://www.mongodb.com/docs/manual/reference/command/serverStatus/). The section oxbow.storage tells the log's bytes from the tables',
// since dropping a table frees only the latter.
func (b *Backend) serverStatus(operation, *backend.Request) (bson.Document, error) {
	uptime := time.Since(b.started)
	return newReply(func(dst []byte) []byte {
		host, err := os.Hostname()
		if err == nil {
			dst = bsoncore.AppendStringElement(dst, "host", host)
		}
		dst = bsoncore.AppendStringElement(dst, "process", "oxbow")
		dst = bsoncore.AppendInt64Element(dst, "pid", int64(os.Getpid()))
		dst = bsoncore.AppendInt64Element(dst, "uptime", int64(uptime/time.Second))
		dst = bsoncore.AppendInt64Element(dst, "uptimeMillis", uptime.Milliseconds())
		dst = bsoncore.AppendDateTimeElement(dst, "localTime", time.Now().UnixMilli())
		dst = appendDocument(dst, "metrics", b.appendCursorMetrics)
		dst = appendDocument(dst, "storageEngine", func(dst []byte) []byte {
			dst = bsoncore.AppendStringElement(dst, "name", "pebble")
			dst = bsoncore.AppendBooleanElement(dst, "persistent", b.onDisk)
			return bsoncore.AppendBooleanElement(dst, "readOnly", false)
		})
		return appendDocument(dst, "oxbow", func(dst []byte) []byte { return appendDocument(dst, "storage", b.appendStorage) })
	}), nil
}

func (b *Backend) appendCursorMetrics(dst []byte) []byte {
	open, patient := b.cursors.count()
	return appendDocument(dst, "cursor", func(dst []byte) []byte {
		return appendDocument(dst, "open", func(dst []byte) []byte {
			dst = bsoncore.AppendInt64Element(dst, "noTimeout", int64(patient))
			return bsoncore.AppendInt64Element(dst, "total", int64(open))
		})
	})
}

// appendStorage appends the store's figures, in bytes.
func (b *Backend) appendStorage(dst []byte) []byte {
	s := b.db.Stats()
	for _, figure := range []struct {
		name  string
		value int64
	}{
		{"logBytes", s.LogBytes},
		{"tableBytes", s.TableBytes},
		{"obsoleteBytes", s.ObsoleteBytes},
		{"memTableBytes", s.MemTableBytes},
		{"cacheBytes", s.CacheBytes},
		{"cacheHits", s.CacheHits},
		{"cacheMisses", s.CacheMisses},
		{"compactions", s.Compactions},
	} {
		dst = bsoncore.AppendInt64Element(dst, figure.name, figure.value)
	}
	return dst
}
