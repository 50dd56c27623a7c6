package statement

import (
	"testing"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// parse reads relaxed Extended JSON.
func parse(t *testing.T, text string) bson.Document {
	t.Helper()
	var raw driver.Raw
	if err := driver.UnmarshalExtJSON([]byte(text), false, &raw); err != nil {
		t.Fatal(err)
	}
	return bson.Document(raw)
}

// TestFieldErrors: a field that is wrong is named, with MongoDB's code and message.
func TestFieldErrors(t *testing.T) {
	find := func(body bson.Document) error { _, err := ParseFind(body); return err }
	update := func(body bson.Document) error { _, err := ParseUpdate(&backend.Request{Body: body}); return err }
	for _, test := range []struct {
		parse   func(bson.Document) error
		command string
		code    mongoerr.Code
		message string
	}{
		{find, `{"find": "c", "foo": 1}`, mongoerr.IDLUnknownField, "BSON field 'find.foo' is an unknown field."},
		{find, `{"find": "c", "filter": 1}`, mongoerr.TypeMismatch, "BSON field 'find.filter' is the wrong type 'int', expected type 'object'"},
		{find, `{"find": "c", "lsid": 1}`, mongoerr.TypeMismatch, "BSON field 'find.lsid' is the wrong type 'int', expected type 'object'"},
		{find, `{"find": "c", "$db": 1}`, mongoerr.TypeMismatch, "BSON field 'find.$db' is the wrong type 'int', expected type 'string'"},
		{find, `{"find": "c", "stmtIds": 1}`, mongoerr.TypeMismatch, "BSON field 'find.stmtIds' is the wrong type 'int', expected type 'array'"},
		{find, `{"find": "c", "limit": 1, "limit": 2}`, mongoerr.IDLDuplicateField, "BSON field 'find.limit' is a duplicate field"},
		{find, `{"find": "c", "startTransaction": true}`, mongoerr.OperationNotSupportedInTxn, "Transactions are not supported yet ('find.startTransaction')"},
		{find, `{"find": "c", "collation": {"locale": "de"}}`, mongoerr.CommandNotSupported, "'find.collation' is not supported yet"},
		{update, `{"update": "c", "updates": [{"q": {}, "u": {}, "sort": {}}]}`, mongoerr.IDLUnknownField, "BSON field 'update.updates.sort' is an unknown field."},
	} {
		e := mongoerr.From(test.parse(parse(t, test.command)))
		if e.Code != test.code || e.Message != test.message {
			t.Errorf("%s\ngives %v", test.command, e)
		}
	}
}

// TestGenericFields: what any command may carry is read, whatever number type it comes in.
func TestGenericFields(t *testing.T) {
	f, err := ParseFind(parse(t, `{"find": "c", "$db": "d", "lsid": {"id": 1}, "txnNumber": 5.0, "stmtId": {"$numberLong": "3"}, "maxTimeMS": 7.0,
		"readConcern": {"level": "local"}, "$clusterTime": {}, "apiVersion": "1", "limit": 2.0, "batchSize": 0}`))
	if err != nil {
		t.Fatal(err)
	}
	if f.Database != "d" || f.LSID == nil || !f.HasTxnNumber || f.TxnNumber != 5 || f.StmtID != 3 || f.MaxTimeMS != 7 || f.ReadConcern == nil {
		t.Errorf("generic fields: %+v", f.Generic)
	}
	if f.Limit != 2 || f.BatchSize != 0 {
		t.Errorf("limit %d, batchSize %d", f.Limit, f.BatchSize)
	}
}

// TestParsingIsLean: reading a command makes its form, and nothing a field.
func TestParsingIsLean(t *testing.T) {
	body := parse(t, `{"find": "c", "filter": {"_id": 1}, "sort": {"a": 1}, "limit": 1, "singleBatch": true, "lsid": {"id": 1}, "$db": "d"}`)
	allocations := testing.AllocsPerRun(100, func() {
		if _, err := ParseFind(body); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 4 {
		t.Errorf("%v allocations", allocations)
	}
}

// TestStorable: a document is stored with its _id first, and as it is where it can be.
func TestStorable(t *testing.T) {
	fill := Fill{
		NewID:        func() [12]byte { return [12]byte{1} },
		NewTimestamp: func() uint64 { return 7<<32 | 3 },
	}
	whole := parse(t, `{"_id": 1, "a": 2}`)
	if got, err := Storable(whole, fill); err != nil || &got[0] != &whole[0] {
		t.Errorf("a document that needs no change: %v, %v", got, err)
	}
	for in, want := range map[string]string{
		`{"a": 2, "_id": 1, "b": 3}`: `{"_id": 1, "a": 2, "b": 3}`,
		`{"a": 2}`:                   `{"_id": {"$oid": "010000000000000000000000"}, "a": 2}`,
		`{"t": {"$timestamp": {"t": 0, "i": 0}}, "_id": 1, "u": {"$timestamp": {"t": 0, "i": 1}}}`: `{"_id": 1, "t": {"$timestamp": {"t": 7, "i": 3}}, "u": {"$timestamp": {"t": 0, "i": 1}}}`,
		`{"_id": {"$timestamp": {"t": 0, "i": 0}}, "d": {"t": {"$timestamp": {"t": 0, "i": 0}}}}`:  `{"_id": {"$timestamp": {"t": 0, "i": 0}}, "d": {"t": {"$timestamp": {"t": 0, "i": 0}}}}`,
		`{"_id": 1, "t": {"$timestamp": {"t": 0, "i": 0}}}`:                                        `{"_id": 1, "t": {"$timestamp": {"t": 7, "i": 3}}}`,
		`{"t": {"$timestamp": {"t": 0, "i": 0}}}`:                                                  `{"_id": {"$oid": "010000000000000000000000"}, "t": {"$timestamp": {"t": 7, "i": 3}}}`,
		`{}`: `{"_id": {"$oid": "010000000000000000000000"}}`,
	} {
		got, err := Storable(parse(t, in), fill)
		if err != nil || string(got) != string(parse(t, want)) {
			t.Errorf("%s becomes %s, %v", in, got, err)
		}
	}
	request := parse(t, `{"_id": 1, "t": {"$timestamp": {"t": 0, "i": 0}}}`)
	if _, err := Storable(request, fill); err != nil || string(request) != string(parse(t, `{"_id": 1, "t": {"$timestamp": {"t": 0, "i": 0}}}`)) {
		t.Errorf("the client's own bytes were changed: %v", err)
	}
	for _, in := range []string{`{"_id": [1]}`, `{"a": 1, "_id": {"$regularExpression": {"pattern": "a", "options": ""}}}`, `{"_id": {"$undefined": true}}`} {
		if _, err := Storable(parse(t, in), fill); !mongoerr.Is(err, mongoerr.InvalidIDField) {
			t.Errorf("%s gives %v", in, err)
		}
	}
}

// TestTimestampsRise: also when the clock stands still or goes back.
func TestTimestampsRise(t *testing.T) {
	var ts Timestamps
	now := time.Unix(1_000_000_000, 0)
	var last uint64
	for _, at := range []time.Time{now, now, now.Add(-time.Hour), now.Add(time.Second), now} {
		next := ts.Next(at)
		if next <= last || next>>32 < uint64(at.Unix()) {
			t.Fatalf("%d after %d", next, last)
		}
		last = next
	}
	if last>>32 != uint64(now.Unix())+1 || uint32(last) != 2 {
		t.Errorf("the last is %d of second %d", uint32(last), last>>32)
	}
}

// TestSynced: j and every w beyond one member ask for the disk.
func TestSynced(t *testing.T) {
	for concern, want := range map[string]bool{
		`{}`: false, `{"w": 1}`: false, `{"w": 0}`: false, `{"j": false}`: false,
		`{"j": true}`: true, `{"w": "majority"}`: true, `{"w": 2}`: true, `{"w": 3.0, "wtimeout": 5}`: true,
	} {
		g := Generic{WriteConcern: parse(t, concern)}
		if g.Synced() != want {
			t.Errorf("%s: %t", concern, g.Synced())
		}
	}
	if (&Generic{}).Synced() {
		t.Error("without a write concern")
	}
}

// FuzzParse: no bytes make a parser panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(bson.Document{5, 0, 0, 0, 0}))
	f.Add([]byte{16, 0, 0, 0, 2, 'f', 0, 2, 0, 0, 0, 'c', 0, 0})
	f.Fuzz(func(_ *testing.T, body []byte) {
		req := &backend.Request{Body: body}
		_, _ = ParseFind(body)
		_, _ = ParseAggregate(body)
		_, _ = ParseInsert(req)
		_, _ = ParseUpdate(req)
		_, _ = ParseDelete(req)
		_, _ = ParseFindAndModify(body)
		_, _ = ParseCreateIndexes(body)
		_, _ = ParseExplain(body)
		_, _ = ParseKillCursors(body)
	})
}
