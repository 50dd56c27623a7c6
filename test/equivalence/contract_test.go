package equivalence

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"oxbow/internal/backend"
	"oxbow/internal/backend/backendtest"
	"oxbow/test/inprocess"
)

// Why cases of the contract are left out on collections with a layout. docs/differences.md has the reasons at more length.
const (
	unsorted  = "nothing decides the order of the documents: it is by partition"
	unrenamed = "a collection with a layout is not renamed"
	notUnique = "a unique index must hold the layout's fields"
	asRouter  = "the reply has the shape that a router gives it"
	asReached = "a find reads each partition as it is when it gets there"
	noTime    = "the documents have no time in the layout's field"
)

// always are the cases that are left out for every layout.
var always = map[string]string{
	"collection/rename": unrenamed,

	"explain/a find by each kind of plan":            asRouter,
	"explain/what can be explained":                  asRouter,
	"figures/collStats":                              asRouter,
	"figures/dbStats":                                asRouter,
	"figures/validate":                               asRouter,
	"index/make, list, drop":                         notUnique,
	"index/a unique index on duplicates is not made": notUnique,
	"insert/a unique index is kept":                  notUnique,
	"update/a unique index holds under updates":      notUnique,
}

// contracts are the layouts that the contract is run against, as YAML, with the cases that are left out beside those of always.
var contracts = []struct {
	name, layout string
	except       map[string]string
}{
	{"hash", "hash: {field: _id, count: 4}", map[string]string{
		"cursor/batch by batch":                      unsorted,
		"cursor/a cursor shows no later writes":      asReached,
		"find/filter, projection, sort, skip, limit": unsorted,
		"find/hints and index bounds":                unsorted,
	}},
	{"time", "time: {field: _id, unit: s, every: minute}", map[string]string{
		"find/by _id": noTime,
		"insert/a missing _id is generated and comes first": noTime,
		"update/upserts": noTime,
	}},
	{"both", "time: {field: _id, unit: s, every: minute}\n    hash: {field: _id, count: 3}", map[string]string{
		"aggregate/batches": unsorted,
		"aggregate/stages":  unsorted,
		"count/distinct":    unsorted,
		"cursor/a limit ends the cursor, a single batch too": unsorted,
		"cursor/a limit holds over batches":                  unsorted,
		"cursor/batch by batch":                              unsorted,
		"find/filter, projection, sort, skip, limit":         unsorted,
		"find/hints and index bounds":                        unsorted,
		"cursor/a cursor shows no later writes":              asReached,
		"find/by _id":                                        noTime,
		"insert/a missing _id is generated and comes first":  noTime,
		"update/upserts":                                     noTime,
	}},
}

// TestContract runs the contract of a backend against collections that have a layout: their replies must be MongoDB's too.
func TestContract(t *testing.T) {
	databases, err := backendtest.Databases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range contracts {
		t.Run(c.name, func(t *testing.T) {
			var b strings.Builder
			b.WriteString("backends: {m: {embedded: m}}\ncollections:\n")
			for _, db := range append(databases, "contract_sequences", "contract_request", "contract_reply", "contract_many") {
				for _, collection := range []string{"c", "o", "i"} {
					fmt.Fprintf(&b, "  %s.%s:\n    %s\n", db, collection, c.layout)
				}
			}
			except := maps.Clone(always)
			maps.Copy(except, c.except)
			backendtest.RunExcept(t, func(t *testing.T) backend.Backend { return inprocess.Open(t, b.String()) }, except)
		})
	}
}
