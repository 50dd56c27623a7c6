package purge_test

import (
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/maintain/purge"
	"oxbow/internal/query"
	"oxbow/internal/route"
)

// someValue generates what a time field may hold: times of the unit around the cut, and everything else.
func someValue(unit route.Unit) *rapid.Generator[bson.Value] {
	return rapid.Custom(func(t *rapid.T) bson.Value {
		at := now.Add(time.Duration(rapid.IntRange(-180, 60).Draw(t, "minutes")) * time.Minute)
		switch rapid.IntRange(0, 11).Draw(t, "kind") {
		case 0:
			return bson.Value{}
		case 1:
			return bson.Null
		case 2:
			return bsontest.Values(1).Draw(t, "value")
		case 3:
			return bson.Value{Type: bson.TypeArray, Data: bsoncore.NewArrayBuilder().AppendValue(timeValue(unit, at)).AppendDateTime(0).Build()}
		case 4: // seconds where milliseconds belong, or the other way round
			return bson.Value{Type: bson.TypeInt64, Data: bsoncore.AppendInt64(nil, at.Unix())}
		case 5:
			return bson.Value{Type: bson.TypeDateTime, Data: bsoncore.AppendDateTime(nil, at.Unix())}
		case 6:
			return bson.Value{Type: bson.TypeInt64, Data: bsoncore.AppendInt64(nil, at.UnixMilli())}
		default:
			return timeValue(unit, at)
		}
	})
}

func timeValue(unit route.Unit, at time.Time) bson.Value {
	switch unit {
	case route.Seconds:
		return bson.Value{Type: bson.TypeInt32, Data: bsoncore.AppendInt32(nil, int32(at.Unix()))}
	case route.Milliseconds:
		return bson.Value{Type: bson.TypeDouble, Data: bsoncore.AppendDouble(nil, float64(at.UnixMilli()))}
	case route.ObjectID:
		id := make([]byte, 12)
		for i := range 4 {
			id[i] = byte(at.Unix() >> (24 - 8*i))
		}
		return bson.Value{Type: bson.TypeObjectID, Data: id}
	}
	return bson.Value{Type: bson.TypeDateTime, Data: bsoncore.AppendDateTime(nil, at.UnixMilli())}
}

// due is what the Predicate says in words: a time of the unit, from From on and before the cut.
func due(unit route.Unit, v bson.Value, cut time.Time) bool {
	layout := route.Time{Field: bson.ParsePath("time"), Unit: unit}
	if unit == route.Seconds || unit == route.Milliseconds {
		// A fraction of a unit is a time too, if none that a layout takes.
		f, ok := v.AsFloat64OK()
		if n, isDecimal := bson.NumberOf(v); v.Type == bson.TypeDecimal128 && isDecimal {
			f, ok = n.Float64(), true
		}
		per := map[route.Unit]float64{route.Seconds: 1, route.Milliseconds: 1000}[unit]
		return ok && f >= per*float64(purge.DefaultFrom.Unix()) && f < per*float64(cut.Unix())
	}
	ms, err := layout.Instant(v)
	if err != nil {
		return false
	}
	return ms >= purge.DefaultFrom.UnixMilli() && ms < cut.UnixMilli()
}

// TestWhatGoes: of random documents exactly those go whose time is what the Predicate says and that match its filter, whatever the strategy.
func TestWhatGoes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		unit := rapid.SampledFrom([]route.Unit{route.Date, route.Seconds, route.Milliseconds, route.ObjectID}).Draw(r, "unit")
		strategy := rapid.SampledFrom(byTime).Draw(r, "strategy")
		var docs []bson.Document
		for i := range rapid.IntRange(0, 60).Draw(r, "documents") {
			b := bsoncore.NewDocumentBuilder().AppendInt32("_id", int32(i))
			if v := someValue(unit).Draw(r, "time"); v.Type != 0 {
				b.AppendValue("time", v)
			}
			docs = append(docs, bson.Document(b.AppendInt32("n", int32(rapid.IntRange(0, 2).Draw(r, "n"))).Build()))
		}
		p := purge.Predicate{Field: "time", Unit: unit, Age: time.Hour}
		if rapid.Bool().Draw(r, "filtered") {
			p.Where = bsontest.Doc(t, `{"n": {"$lte": 1}}`)
		}
		s := openStore(t)
		s.index(t, `{"time": 1}`)
		s.insert(t, docs...)
		var want []bson.Document
		for _, d := range s.all(t) { // as they are stored: a timestamp of 0 becomes one of now
			v, _ := bson.Get(d, "time")
			n, _ := bson.Get(d, "n")
			if !due(unit, v, now.Add(-time.Hour)) || p.Where != nil && n.Int32() > 1 {
				want = append(want, d)
			}
		}
		o := s.options(strategy, p)
		o.Batch = rapid.IntRange(1, 20).Draw(r, "batch")
		if strategy != purge.Nightly && rapid.Bool().Draw(r, "archived") {
			o.Archive = &kept{}
		}
		_, err := finish(t.Context(), o)
		if strategy != purge.IDs && err != nil {
			wantRefusal(t, err, "use ids") // the index has arrays
			o.Strategy = purge.IDs
			_, err = finish(t.Context(), o)
		}
		if err != nil {
			r.Fatal(err)
		}
		wantSame(r, s.all(t), want)
		if err := s.Close(); err != nil {
			r.Fatal(err)
		}
	})
}

// TestWhatGoesByFilter: the same for filters, which may look at anything.
func TestWhatGoesByFilter(t *testing.T) {
	filters := []string{
		`{"a": %s}`, `{"a": {"$gt": %s}}`, `{"a": {"$lte": %s}}`, `{"a": {"$in": [%s, null]}}`, `{"a": {"$gte": %[1]s, "$lt": 20}, "b": {"$ne": %[1]s}}`,
		`{"$or": [{"a": %[1]s}, {"b": {"$lt": %[1]s}}]}`, `{"_id": {"$gte": %s}}`, `{"_id": {"$lt": %s}, "b": {"$exists": true}}`,
	}
	rapid.Check(t, func(r *rapid.T) {
		strategy := rapid.SampledFrom([]purge.Strategy{purge.IDs, purge.Ranges}).Draw(r, "strategy")
		text := rapid.SampledFrom([]string{"3", "7.5", `"m"`, `{"$date": "2026-01-01T00:00:00Z"}`}).Draw(r, "value")
		where := bsontest.Doc(t, fmt.Sprintf(rapid.SampledFrom(filters).Draw(r, "filter"), text))
		filter, err := query.ParseFilter(where, query.Env{})
		if err != nil {
			r.Fatal(err)
		}
		some := rapid.OneOf(rapid.SampledFrom([]bson.Value{bsontest.Value(t, "3"), bsontest.Value(t, "8"), bsontest.Value(t, `"n"`), bsontest.Value(t, `[1, 30]`)}), bsontest.Values(1))
		var docs []bson.Document
		for i := range rapid.IntRange(0, 40).Draw(r, "documents") {
			b := bsoncore.NewDocumentBuilder().AppendInt32("_id", int32(i))
			for _, field := range []string{"a", "b"} {
				if rapid.IntRange(0, 5).Draw(r, "there") > 0 {
					b.AppendValue(field, some.Draw(r, field))
				}
			}
			docs = append(docs, bson.Document(b.Build()))
		}
		s := openStore(t)
		s.index(t, `{"a": 1}`)
		s.command(t, `{"createIndexes": "log", "indexes": [{"key": {"b": 1}, "name": "b"}]}`)
		s.insert(t, docs...)
		stored := s.all(t)
		var want []bson.Document
		for _, d := range stored {
			if matches, err := filter.Match(d); err != nil {
				r.Fatal(err)
			} else if !matches {
				want = append(want, d)
			}
		}
		o := s.options(strategy, purge.Predicate{Where: where})
		o.Batch = rapid.IntRange(1, 20).Draw(r, "batch")
		if rapid.Bool().Draw(r, "archived") {
			o.Archive = &kept{}
		}
		_, err = finish(t.Context(), o)
		if strategy == purge.Ranges && err != nil {
			wantRefusal(t, err, "use ids") // no key is bounded, or it has arrays
			want = stored
		} else if err != nil {
			r.Fatal(err)
		}
		wantSame(r, s.all(t), want)
		if err := s.Close(); err != nil {
			r.Fatal(err)
		}
	})
}
