package statement

import (
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Generic are the fields that every command may carry (https://www.mongodb.com/docs/manual/reference/command/).
type Generic struct {
	Database       string // $db
	LSID           bson.Document
	TxnNumber      int64
	HasTxnNumber   bool
	StmtID         int32 // of a single-statement write; -1: none
	StmtIDs        bson.Array
	MaxTimeMS      int64 // 0: none
	Comment        bson.Value
	ReadConcern    bson.Document
	WriteConcern   bson.Document
	ReadPreference bson.Value
}

// set takes one generic field; known is false if it is none.
func (g *Generic) set(command string, key []byte, v bson.Value) (known bool, err error) {
	name := command + "." + string(key)
	switch string(key) {
	case "$db":
		s, ok := v.StringValueOK()
		if !ok {
			return true, wrongType(name, v, "string")
		}
		g.Database = s
	case "lsid":
		return true, document(func(g *Generic) *bson.Document { return &g.LSID })(name, g, v)
	case "txnNumber":
		n, err := wholeNumber(name, v)
		if err != nil {
			return true, err
		}
		g.TxnNumber, g.HasTxnNumber = n, true
	case "stmtId":
		n, err := wholeNumber(name, v)
		if err != nil {
			return true, err
		}
		g.StmtID = int32(n)
	case "stmtIds":
		return true, array(func(g *Generic) *bson.Array { return &g.StmtIDs })(name, g, v)
	case "maxTimeMS":
		return true, maxTimeMS(g, v)
	case "comment":
		g.Comment = v
	case "readConcern":
		return true, document(func(g *Generic) *bson.Document { return &g.ReadConcern })(name, g, v)
	case "writeConcern":
		return true, document(func(g *Generic) *bson.Document { return &g.WriteConcern })(name, g, v)
	case "$readPreference", "$queryOptions":
		g.ReadPreference = v
	case "autocommit", "startTransaction":
		return true, mongoerr.New(mongoerr.IllegalOperation, "transactions are not supported yet ('%s')", name)
	case "$clusterTime", "$configTime", "$topologyTime", "$client", "$audit", "$configServerState",
		"apiVersion", "apiStrict", "apiDeprecationErrors", "maxTimeMSOpOnly", "$replData", "$oplogQueryData",
		"clientOperationKey", "mayBypassWriteBlocking", "requestGossipRoutingCache":
		// About the message or the connection, not about the command: the gateway has looked at them.
	default:
		return false, nil
	}
	return true, nil
}

// maxTimeMS has its own range in MongoDB: a non-negative int32.
func maxTimeMS(g *Generic, v bson.Value) error {
	n, err := wholeNumber("maxTimeMS", v)
	if err != nil {
		return err
	}
	if n < 0 || n > 1<<31-1 {
		return mongoerr.New(mongoerr.BadValue, "%d value for maxTimeMS is out of range [0, 2147483647]", n)
	}
	g.MaxTimeMS = n
	return nil
}

// Synced reports whether the write concern asks for the disk: j: true, or a w beyond 1.
func (g *Generic) Synced() bool {
	it := bson.Elements(g.WriteConcern)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "j":
			if b, err := lenientBool("j", v); err == nil && b {
				return true
			}
		case "w":
			if s, ok := v.StringValueOK(); ok && s == "majority" {
				return true
			}
		}
	}
	return false
}

// CheckDatabase applies MongoDB's rules for database names
// (https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions).
func CheckDatabase(db string) error {
	if db == "" || len(db) > 63 || strings.ContainsAny(db, "/\\. \"$\x00") {
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid database name: '%s'", db)
	}
	return nil
}

// CheckCollection applies MongoDB's rules for collection names; a namespace holds at most 255 bytes.
func CheckCollection(db, collection string) error {
	bad := collection == "" || collection[0] == '.' || strings.ContainsAny(collection, "$\x00") ||
		len(db)+1+len(collection) > 255
	if bad {
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid namespace specified '%s.%s'", db, collection)
	}
	return nil
}
