package operation

import (
	"strings"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
)

// ownComment begins the comments of what Oxbow's jobs send.
const ownComment = "oxbow:"

// AllowsScan reports whether the operation's comment allows it to read everything.
func (o *Operation) AllowsScan() bool { return strings.Contains(o.Comment, backend.AllowScan) }

// internal says what an operation is that no application has sent, or that is not to be taken for a slow one; "" for all others.
func internal(o *Operation, command, cursor bson.Document, description, message string, active, hasClient bool) string {
	name, _, _ := bson.First(command)
	database, collection := o.Collection()
	switch {
	case !active:
		return "idle"
	case !hasClient && !strings.HasPrefix(description, "conn"):
		return "the server's own"
	case o.User == "__system" || strings.HasPrefix(name, "replSet") || strings.HasPrefix(name, "_"):
		return "replication"
	case name == "createIndexes" || strings.HasPrefix(message, "Index Build"):
		return "an index build"
	case name == "hello" || strings.EqualFold(name, "isMaster"):
		return "a driver's monitor"
	case name == "currentOp" || strings.Contains(o.Shape, "$currentOp"):
		return "this list"
	case database == "local" || database == "config" || database == "admin" || strings.HasPrefix(collection, "system."):
		return "about the server's own data"
	case strings.Contains(o.Shape, "$changeStream") || truthy(cursor, "tailable") || truthy(command, "tailable"):
		return "waits for changes"
	case strings.HasPrefix(o.Comment, ownComment) && !o.AllowsScan():
		return "a job of Oxbow"
	}
	return ""
}

func truthy(doc bson.Document, key string) bool {
	v, ok := bson.Get(doc, key)
	b, isBool := v.BooleanOK()
	return ok && isBool && b
}
