package purge

import (
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
)

// OplogBytes is the size of the oplog entry that one deleted document makes, in bytes. Each one makes its own, whatever the delete was that took it away:
//
//	{lsid, txnNumber, op: "d", ns, ui: UUID, o: {_id}, ts, t, v: 2, wall, stmtId, prevOpTime}
//
// of which lsid, txnNumber, stmtId and prevOpTime are those of retryable writes, which deletes of many documents are not
// (https://www.mongodb.com/docs/manual/core/replica-set-oplog/, https://www.mongodb.com/docs/manual/core/retryable-writes/). The entry of a server is made here
// and measured. Servers from 6.1 on put what the TTL monitor takes in one batch into fewer entries, so there it is the most.
func OplogBytes(namespace string, id bson.Value) int64 {
	b := bsoncore.NewDocumentBuilder().AppendString("op", "d").AppendString("ns", namespace).AppendBinary("ui", 4, make([]byte, 16))
	b.StartDocument("o").AppendValue("_id", id).FinishDocument()
	b.AppendTimestamp("ts", 0, 0).AppendInt64("t", 0).AppendInt64("v", 2).AppendDateTime("wall", 0)
	return int64(len(b.Build()))
}
