package embedded

import (
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/engine"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// isGone tells the errors of a table that was dropped while it was being looked at.
func isGone(err error) bool {
	return mongoerr.Is(err, mongoerr.NamespaceNotFound) || mongoerr.Is(err, mongoerr.QueryPlanKilled)
}

func sum(bytes map[string]int64) int64 {
	var total int64
	for _, n := range bytes {
		total += n
	}
	return total
}

// collStats reports a collection's figures; those of one that isn't there are zero
// (https://www.mongodb.com/docs/manual/reference/command/collStats/).
func (b *Backend) collStats(_ operation, req *backend.Request) (bson.Document, error) {
	c, err := statement.ParseCollStats(req.Body)
	if err != nil {
		return nil, err
	}
	name := engine.Name{Database: c.Database, Collection: c.Collection}
	var (
		stats   engine.TableStats
		indexes []engine.Index
	)
	table, exists := b.db.Table(name)
	if exists {
		indexes = table.Indexes()
		if stats, err = table.Stats(); err != nil {
			return nil, err
		}
	}
	return newReply(func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "ns", namespace(name))
		return appendTableStats(dst, stats, indexes, exists, c.Scale)
	}), nil
}

func appendTableStats(dst []byte, stats engine.TableStats, indexes []engine.Index, exists bool, scale int64) []byte {
	indexBytes := sum(stats.IndexBytes)
	dst = appendNumber(dst, "size", stats.DataBytes/scale)
	dst = appendNumber(dst, "count", stats.Documents)
	if stats.Documents > 0 {
		dst = appendNumber(dst, "avgObjSize", stats.DataBytes/stats.Documents)
	}
	dst = appendNumber(dst, "numOrphanDocs", 0)
	dst = appendNumber(dst, "storageSize", stats.DiskBytes/scale)
	if exists {
		dst = appendNumber(dst, "freeStorageSize", 0)
		dst = bsoncore.AppendBooleanElement(dst, "capped", false)
	}
	dst = bsoncore.AppendInt32Element(dst, "nindexes", int32(len(indexes)))
	if exists {
		dst = appendEmptyArray(dst, "indexBuilds")
	}
	dst = appendNumber(dst, "totalIndexSize", indexBytes/scale)
	dst = appendNumber(dst, "totalSize", (stats.DiskBytes+indexBytes)/scale)
	dst = appendDocument(dst, "indexSizes", func(dst []byte) []byte {
		for _, x := range indexes {
			dst = appendNumber(dst, x.Name, stats.IndexBytes[x.Name]/scale)
		}
		return dst
	})
	dst = appendDocument(dst, "indexDetails", func(dst []byte) []byte {
		for _, x := range indexes {
			dst = appendDocument(dst, x.Name, func(dst []byte) []byte { return dst })
		}
		return dst
	})
	return appendNumber(dst, "scaleFactor", scale)
}

// dbStats reports a database's figures (https://www.mongodb.com/docs/manual/reference/command/dbStats/).
func (b *Backend) dbStats(_ operation, req *backend.Request) (bson.Document, error) {
	d, err := statement.ParseDBStats(req.Body)
	if err != nil {
		return nil, err
	}
	var documents, dataBytes, diskBytes, indexBytes, indexes, tables int64
	for _, table := range b.db.Tables(d.Database) {
		s, err := table.Stats()
		if isGone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		tables++
		indexes += int64(len(table.Indexes()))
		documents += s.Documents
		dataBytes += s.DataBytes
		diskBytes += s.DiskBytes
		indexBytes += sum(s.IndexBytes)
	}
	scaled := func(n int64) float64 { return float64(n) / float64(d.Scale) }
	return newReply(func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "db", d.Database)
		dst = bsoncore.AppendInt64Element(dst, "collections", tables)
		dst = bsoncore.AppendInt64Element(dst, "views", 0)
		dst = bsoncore.AppendInt64Element(dst, "objects", documents)
		dst = bsoncore.AppendDoubleElement(dst, "avgObjSize", float64(dataBytes)/float64(max(documents, 1)))
		dst = bsoncore.AppendDoubleElement(dst, "dataSize", scaled(dataBytes))
		dst = bsoncore.AppendDoubleElement(dst, "storageSize", scaled(diskBytes))
		dst = bsoncore.AppendInt64Element(dst, "indexes", indexes)
		dst = bsoncore.AppendDoubleElement(dst, "indexSize", scaled(indexBytes))
		dst = bsoncore.AppendDoubleElement(dst, "totalSize", scaled(diskBytes+indexBytes))
		dst = bsoncore.AppendInt64Element(dst, "scaleFactor", d.Scale)
		if usage, ok := b.diskUsage(); ok {
			dst = bsoncore.AppendDoubleElement(dst, "fsUsedSize", scaled(int64(usage.UsedBytes)))
			dst = bsoncore.AppendDoubleElement(dst, "fsTotalSize", scaled(int64(usage.TotalBytes)))
		}
		return dst
	}), nil
}

// diskUsage reads the figures of the file system below the store; a store in memory has none.
func (b *Backend) diskUsage() (vfs.DiskUsage, bool) {
	if !b.onDisk {
		return vfs.DiskUsage{}, false
	}
	usage, err := vfs.Default.GetDiskUsage(b.dir)
	return usage, err == nil
}
