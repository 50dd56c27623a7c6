package exec

import (
	"context"
	"encoding/binary"
	"strconv"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
)

// Distinct runs a distinct on all its targets and returns the union of their values as an array, in the order in which they were
// first seen. Beyond 16 MiB it fails, as MongoDB's does.
func (e *Executor) Distinct(ctx context.Context, p *plan.Distinct) (bson.Array, error) {
	accounts, release := e.newAccounts(len(p.Routed.Targets))
	defer release()
	perTarget := make([]bson.Value, len(p.Routed.Targets))
	err := e.eachWithin(ctx, accounts, p.Routed.Targets, p.Command, func(i int, reply bson.Document) error {
		perTarget[i], _ = bson.Get(reply, "values")
		return nil
	})
	if err != nil {
		return nil, err
	}
	account := e.Memory.Account(memory.Queries)
	defer account.Close()
	return union(perTarget, &account)
}

// valueBytes is what a value costs in a set beside its bytes.
const valueBytes = 48

// union returns the distinct values of arrays as one array. account is charged for what it remembers meanwhile.
func union(arrays []bson.Value, account *memory.Account) (bson.Array, error) {
	seen := make(map[string]struct{})
	var values values
	var key []byte
	for _, a := range arrays {
		it := bson.Elements(a.Data)
		for it.Next() {
			key = bson.AppendKey(key[:0], it.Value(), false)
			if _, ok := seen[string(key)]; ok {
				continue
			}
			if err := account.Grow(int64(len(key)+len(it.Value().Data)) + valueBytes); err != nil {
				return nil, err
			}
			seen[string(key)] = struct{}{}
			values.add(it.Value())
			if len(values.bytes) > bson.MaxDocumentSize {
				return nil, mongoerr.New(mongoerr.DistinctTooBig, "distinct too big, 16mb cap")
			}
		}
	}
	return values.array(), nil
}

// values is an array under construction.
type values struct {
	bytes []byte // elements behind the length
	n     int
}

func (a *values) add(v bson.Value) {
	a.bytes = append(a.bytes, byte(v.Type))
	a.bytes = strconv.AppendInt(a.bytes, int64(a.n), 10)
	a.bytes = append(a.bytes, 0)
	a.bytes = append(a.bytes, v.Data...)
	a.n++
}

func (a *values) array() bson.Array {
	out := make([]byte, 4, len(a.bytes)+5)
	binary.LittleEndian.PutUint32(out, uint32(len(a.bytes)+5))
	out = append(out, a.bytes...)
	return append(out, 0)
}
