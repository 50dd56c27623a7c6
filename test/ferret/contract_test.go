package ferret

import (
	"testing"

	"oxbow/internal/backend"
	"oxbow/internal/backend/backendtest"
	"oxbow/internal/backend/remote"
)

// Why cases of the contract are left out: what FerretDB 1.24.2 itself does otherwise than MongoDB.
const (
	notBuilt    = "FerretDB has not built an operator, stage, field or option of the case"
	unchecked   = "FerretDB does not check what the case has refused"
	otherError  = "FerretDB gives another code or text for an error of the case"
	otherShape  = "FerretDB's reply has other fields, or other types of number"
	noPlans     = "FerretDB explains what its database does, and takes no hint"
	noRetries   = "FerretDB takes a transaction number and does the write again"
	stopsAtOnce = "FerretDB's reply to a write with an error lacks n, the index, or the statements behind it"
	noUnique    = "FerretDB gives the error of its database for a second key of a unique index"
	noAtomicity = "FerretDB's updates by several clients at once get lost"
	largeReply  = "FerretDB's batches go beyond 16 MiB"
)

// otherwise are the cases that are left out.
var otherwise = map[string]string{
	"aggregate/stages":                                         notBuilt,
	"aggregate/batches":                                        notBuilt,
	"aggregate/lookup":                                         notBuilt,
	"aggregate/what is refused":                                otherError,
	"collection/create, list, drop":                            otherShape,
	"collection/what create refuses":                           unchecked,
	"collection/rename":                                        notBuilt,
	"collection/databases":                                     unchecked,
	"count/count":                                              notBuilt,
	"count/distinct":                                           otherError,
	"cursor/killing cursors":                                   notBuilt,
	"cursor/a cursor dies with its collection":                 otherError,
	"delete/statements are checked":                            otherError,
	"explain/a find by each kind of plan":                      noPlans,
	"explain/what can be explained":                            noPlans,
	"explain/what cannot":                                      unchecked,
	"figures/collStats":                                        otherShape,
	"figures/dbStats":                                          otherShape,
	"figures/validate":                                         otherShape,
	"find/a missing collection is empty":                       otherShape,
	"find/errors come before emptiness":                        unchecked,
	"find/filter, projection, sort, skip, limit":               notBuilt,
	"find/hints and index bounds":                              noPlans,
	"find/a time limit that is not reached, a comment":         notBuilt,
	"findandmodify/update":                                     notBuilt,
	"index/make, list, drop":                                   notBuilt,
	"index/a missing collection":                               unchecked,
	"index/conflicts":                                          otherError,
	"index/a unique index on duplicates is not made":           noUnique,
	"insert/an ordered insert stops at a duplicate":            otherShape,
	"insert/a unique index is kept":                            otherShape,
	"insert/no documents, unknown fields, wrong types":         unchecked,
	"insert/write concerns":                                    unchecked,
	"retry/an insert sent twice is done once":                  noRetries,
	"retry/an update sent twice is done once":                  noRetries,
	"retry/a findAndModify sent twice gives the same document": noRetries,
	"retry/a delete sent twice is done once":                   noRetries,
	"retry/what cannot be retried":                             noRetries,
	"update/replacement keeps the _id":                         stopsAtOnce,
	"update/arrays: positional, all, filtered":                 notBuilt,
	"update/pipelines with let and constants":                  notBuilt,
	"update/an ordered update stops at its first error, an unordered one goes on": stopsAtOnce,
	"update/a unique index holds under updates":                                   noUnique,
	"update/statements are checked":                                               otherError,
	"request bytes stay":                                                          notBuilt,
	"batches end at 16 MiB":                                                       largeReply,
	"a time limit":                                                                notBuilt,
	"many at once":                                                                noAtomicity,
}

// connect opens a remote backend that is closed with the test.
func connect(t testing.TB, uri string) *remote.Backend {
	t.Helper()
	b, err := remote.Open(uri)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

// TestContract: a backend of the kind remote keeps the contract in front of FerretDB, but for what FerretDB itself does otherwise.
func TestContract(t *testing.T) {
	uri := Serve(t)
	backendtest.RunExcept(t, func(t *testing.T) backend.Backend { return connect(t, uri) }, otherwise)
}
