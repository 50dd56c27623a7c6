package engine

import (
	"testing"

	"oxbow/internal/mongoerr"
)

// A write that wants its table to be there does not make it: neither an insert nor an upsert, and the statements around it are not concerned.
func TestExisting(t *testing.T) {
	db := openTest(t)
	mustInsert(t, db, doc("_id", 1))
	gone := Name{"db", "gone"}
	upsert := &UpdateStatement{Query: Query{Filter: mustFilter(t, doc("_id", 4))}, Update: mustUpdate(t, doc("$set", doc("a", 1))), Upsert: true}
	writes := []Write{
		{Table: testTable, Existing: true, Insert: doc("_id", 2)},
		{Table: gone, Existing: true, Insert: doc("_id", 3)},
		{Table: gone, Existing: true, Update: upsert, Statement: 2},
		{Table: testTable, Existing: true, Update: upsert, Statement: 3},
	}
	rs := mustWrite(t, db, writes, WriteOptions{})
	for i, code := range []mongoerr.Code{0, mongoerr.StaleConfig, mongoerr.StaleConfig, 0} {
		if code == 0 && rs[i].Err != nil || code != 0 && !mongoerr.Is(rs[i].Err, code) {
			t.Errorf("statement %d: %v", i, rs[i].Err)
		}
	}
	if _, there := db.Table(gone); there {
		t.Error("the table was made")
	}
	mustBeWhole(t, db, testTable, 3)
	rs = mustWrite(t, db, writes[1:], WriteOptions{Ordered: true})
	if !mongoerr.Is(rs[0].Err, mongoerr.StaleConfig) || !rs[1].Skipped || !rs[2].Skipped {
		t.Errorf("ordered: %+v", rs)
	}
}
