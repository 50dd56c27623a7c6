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

// genericNames are the generic fields that have to be of a type, by key, with a command's name for errors.
type genericNames map[string]string

func newGenericNames(command string) genericNames {
	names := genericNames{}
	for _, key := range []string{"$db", "lsid", "txnNumber", "stmtId", "stmtIds", "readConcern", "writeConcern", "autocommit", "startTransaction"} {
		names[key] = command + "." + key
	}
	return names
}

// set takes one generic field; known is false if it is none.
func (g *Generic) set(names genericNames, key []byte, v bson.Value) (known bool, err error) {
	switch string(key) {
	case "$db":
		s, ok := v.StringValueOK()
		if !ok {
			return true, wrongType(names["$db"], v, "string")
		}
		g.Database = s
	case "lsid":
		return true, setDocument(&g.LSID, names["lsid"], v)
	case "txnNumber":
		n, err := wholeNumber(names["txnNumber"], v)
		if err != nil {
			return true, err
		}
		g.TxnNumber, g.HasTxnNumber = n, true
	case "stmtId":
		n, err := wholeNumber(names["stmtId"], v)
		if err != nil {
			return true, err
		}
		g.StmtID = int32(n)
	case "stmtIds":
		if v.Type != bson.TypeArray {
			return true, wrongType(names["stmtIds"], v, "array")
		}
		g.StmtIDs = v.Data
	case "maxTimeMS":
		return true, maxTimeMS(g, v)
	case "comment":
		g.Comment = v
	case "readConcern":
		return true, setDocument(&g.ReadConcern, names["readConcern"], v)
	case "writeConcern":
		return true, setDocument(&g.WriteConcern, names["writeConcern"], v)
	case "$readPreference", "$queryOptions":
		g.ReadPreference = v
	case "autocommit", "startTransaction":
		return true, mongoerr.New(mongoerr.OperationNotSupportedInTxn, "Transactions are not supported yet ('%s')", names[string(key)])
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

// Synced reports whether the write concern asks for the disk: j: true, or more than one member, of which a single node has only its disk to give.
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
			if n, ok := v.AsFloat64OK(); ok && n > 1 {
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

// CheckWritable applies MongoDB's rules for the names of collections that clients may write to, beside those of CheckCollection: names that
// begin with "system." are the server's own, system.js and system.profile excepted, and ".system." is reserved.
func CheckWritable(db, collection string) error {
	switch {
	case collection == "system.js" || collection == "system.profile":
		return nil
	case strings.HasPrefix(collection, "system."):
		return mongoerr.New(mongoerr.InvalidNamespace, "Invalid system namespace: %s.%s", db, collection)
	case strings.Contains(collection, ".system."):
		return mongoerr.New(mongoerr.BadValue, "Invalid namespace: %s.%s", db, collection)
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
