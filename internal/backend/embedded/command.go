package embedded

import (
	"oxbow/internal/backend"
	"oxbow/internal/bson"
)

// command runs one command and returns its whole reply.
type command func(b *Backend, op operation, req *backend.Request) (bson.Document, error)

// commands is every command that the backend runs, under each of its names.
var commands = map[string]command{
	"aggregate":        (*Backend).aggregate,
	"collStats":        (*Backend).collStats,
	"collstats":        (*Backend).collStats,
	"count":            (*Backend).count,
	"create":           (*Backend).create,
	"createIndexes":    (*Backend).createIndexes,
	"dbStats":          (*Backend).dbStats,
	"dbstats":          (*Backend).dbStats,
	"delete":           (*Backend).delete,
	"deleteIndexes":    (*Backend).dropIndexes,
	"distinct":         (*Backend).distinct,
	"drop":             (*Backend).drop,
	"dropDatabase":     (*Backend).dropDatabase,
	"dropIndexes":      (*Backend).dropIndexes,
	"explain":          (*Backend).explain,
	"find":             (*Backend).find,
	"findAndModify":    (*Backend).findAndModify,
	"findandmodify":    (*Backend).findAndModify,
	"getMore":          (*Backend).getMore,
	"insert":           (*Backend).insert,
	"killCursors":      (*Backend).killCursors,
	"listCollections":  (*Backend).listCollections,
	"listDatabases":    (*Backend).listDatabases,
	"listIndexes":      (*Backend).listIndexes,
	"ping":             (*Backend).ping,
	"renameCollection": (*Backend).renameCollection,
	"serverStatus":     (*Backend).serverStatus,
	"top":              (*Backend).top,
	"update":           (*Backend).update,
	"validate":         (*Backend).validate,
}
