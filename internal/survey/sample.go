package survey

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
)

// Documents of a collection that are looked at: from both ends of the index on _id, and at random where that is cheap.
const (
	sampleEnd    = 50
	sampleRandom = 200
	// randomFrom is the size from which on a server that draws documents at random need not read all for it: it draws from less than a twentieth
	// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/sample/#behavior).
	randomFrom = 20 * sampleRandom
)

// look samples a collection.
func (g *gathering) look(ctx context.Context, database, name string, c *Collection) {
	var ends, random []bson.Document
	for _, direction := range []int32{1, -1} {
		docs, err := g.reads.find(ctx, database, name, nil, "_id", direction, sampleEnd)
		if err != nil {
			g.missing("a sample of "+c.Namespace, err)
			return
		}
		ends = append(ends, docs...)
	}
	if c.Documents.Value > randomFrom && c.draws {
		if docs, err := g.reads.sample(ctx, database, name, sampleRandom); err == nil {
			random = docs
		}
	}
	c.readSample(once(ends), random, g.survey.At)
}

// once leaves out documents that were read from both ends.
func once(docs []bson.Document) []bson.Document {
	seen := map[string]bool{}
	return slices.DeleteFunc(docs, func(doc bson.Document) bool {
		id, _ := bson.Get(doc, "_id")
		key := string(id.Data)
		again := seen[key]
		seen[key] = true
		return again
	})
}

// readSample takes the types and times out of a sample: of its ends, and of what was drawn at random, which alone tells shares.
func (c *Collection) readSample(ends, random []bson.Document, now time.Time) {
	all := slices.Concat(ends, random)
	c.Sampled = len(all)
	ids := map[string]int{}
	for _, doc := range all {
		id, has := bson.Get(doc, "_id")
		ids[typeOf(id, has)]++
	}
	c.IDTypes = types(ids)
	c.Time = c.timeField(all)
	age := func(doc bson.Document) (time.Time, bool) {
		if c.Time != nil {
			v, has := at(doc, strings.Split(c.Time.Name, ".")...)
			if t, ok := timeOf(v); has && ok {
				return t, true
			}
		}
		id, _ := bson.Get(doc, "_id")
		if id.Type != bson.TypeObjectID {
			return time.Time{}, false
		}
		return timeOf(id)
	}
	recent, dated := 0, 0
	for i, doc := range all {
		t, ok := age(doc)
		if !ok {
			continue
		}
		if c.Oldest.IsZero() || t.Before(c.Oldest) {
			c.Oldest = t
		}
		if t.After(c.Newest) {
			c.Newest = t
		}
		if i >= len(ends) {
			dated++
			if now.Sub(t) < 24*time.Hour {
				recent++
			}
		}
	}
	if dated >= leastSample {
		c.LastDay = Known(c.Documents.Value * int64(recent) / int64(dated))
	}
}

// timeNames are names of fields that hold a time, in lower case and without marks.
var timeNames = []string{"time", "timestamp", "ts", "date", "at", "created", "createdat", "createtime", "createdate", "creationtime", "datetime", "inserted", "insertedat", "logtime", "eventtime", "sent", "sentat"}

// timeField picks the field that says how old documents are: that of a TTL index, else the one with the most dates, else one that is called so and
// holds times in most documents that have it.
func (c *Collection) timeField(sample []bson.Document) *TimeField {
	for i := range c.Indexes {
		if x := &c.Indexes[i]; x.ExpireSeconds.Reported && x.field != "" {
			return timeTypes(x.field, sample)
		}
	}
	names := map[string]bool{}
	dates := map[string]int{}
	for _, doc := range sample {
		it := bson.Elements(doc)
		for it.Next() {
			name := string(it.Key())
			if it.Value().Type == bson.TypeDateTime {
				dates[name]++
			}
			names[name] = names[name] || slices.Contains(timeNames, plainName(name))
		}
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(names)) {
		named, bestNamed := names[name], names[best]
		switch {
		case !named && 2*dates[name] < len(sample):
		case best == "" || named && !bestNamed || named == bestNamed && dates[name] > dates[best]:
			best = name
		}
	}
	if best == "" {
		return nil
	}
	f := timeTypes(best, sample)
	times := 0
	for _, t := range f.Types {
		if slices.Contains([]string{"date", "seconds", "milliseconds", "objectId"}, t.Name) {
			times += t.Count
		}
	}
	if times == 0 {
		return nil // it is only called so
	}
	return f
}

func plainName(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

func timeTypes(name string, sample []bson.Document) *TimeField {
	counts := map[string]int{}
	path := strings.Split(name, ".")
	for _, doc := range sample {
		v, has := at(doc, path...)
		counts[typeOf(v, has)]++
	}
	return &TimeField{Name: name, Types: types(counts)}
}

// types lists counts, the most frequent first.
func types(counts map[string]int) []Type {
	var list []Type
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, Type{name, counts[name]})
	}
	slices.SortStableFunc(list, func(a, b Type) int { return cmp.Compare(b.Count, a.Count) })
	return list
}

// Whole numbers are taken for times in seconds or in milliseconds between the years 1973 and 5138, which do not overlap.
const (
	leastSeconds = 1e8
	mostSeconds  = 1e11
	mostMillis   = 1e14
)

// typeOf is the type of a value as MongoDB names it; of numbers it says what time they can be.
func typeOf(v bson.Value, has bool) string {
	if !has {
		return "missing"
	}
	n, whole := v.AsInt64OK()
	switch {
	case !bson.IsNumber(v.Type) || !whole:
	case n >= leastSeconds && n < mostSeconds:
		return "seconds"
	case n >= mostSeconds && n < mostMillis:
		return "milliseconds"
	}
	return bson.TypeName(v.Type)
}

// timeOf is the time that a value says.
func timeOf(v bson.Value) (time.Time, bool) {
	switch typeOf(v, true) {
	case "date":
		t, ok := v.TimeOK()
		return t.UTC(), ok
	case "objectId":
		id, ok := v.ObjectIDOK()
		return driver.ObjectID(id).Timestamp().UTC(), ok
	case "seconds":
		n, _ := v.AsInt64OK()
		return time.Unix(n, 0).UTC(), true
	case "milliseconds":
		n, _ := v.AsInt64OK()
		return time.UnixMilli(n).UTC(), true
	}
	return time.Time{}, false
}
