package bson_test

import (
	"testing"

	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
)

const logLine = `{"_id": {"$oid": "64f1a2b3c4d5e6f708192a3b"}, "time": 1496620800, "dev": {"$numberLong": "7205759403792793601"},
	"host": "web-17.example", "level": 3, "msg": "request served in 12 ms", "tags": ["a", "b", "c"], "at": {"lat": 48.2, "lon": 16.37}}`

func BenchmarkGet(b *testing.B) {
	doc := bsontest.Doc(b, logLine)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := bson.Get(doc, "msg"); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkWalk(b *testing.B) {
	doc := bsontest.Doc(b, logLine)
	for name, text := range map[string]string{"field": "time", "nested": "at.lon", "array": "tags"} {
		path := bson.ParsePath(text)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				path.Walk(doc, true, func(_ bson.Value, ok, _ bool, _ int) bool {
					if ok {
						n++
					}
					return true
				})
			}
			if n == 0 {
				b.Fatal("not found")
			}
		})
	}
}

func BenchmarkValidate(b *testing.B) {
	doc := bsontest.Doc(b, logLine)
	b.ReportAllocs()
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if err := bson.Validate(doc, bson.MaxDepth); err != nil {
			b.Fatal(err)
		}
	}
}

// samples are pairs of values that are near one another.
func samples(b *testing.B) map[string][2]bson.Value {
	return map[string][2]bson.Value{
		"int32":     {bson.Int32(5).Value(), bson.Int32(6).Value()},
		"int64":     {bson.Int64(7205759403792793601).Value(), bson.Int64(7205759403792793602).Value()},
		"double":    {bson.Double(16.37).Value(), bson.Double(16.38).Value()},
		"mixed":     {bson.Int32(5).Value(), bson.Double(5.5).Value()},
		"decimal":   {bsontest.Value(b, `{"$numberDecimal": "12.34"}`), bsontest.Value(b, `{"$numberDecimal": "12.35"}`)},
		"decimal=f": {bsontest.Value(b, `{"$numberDecimal": "12.34"}`), bson.Double(12.34).Value()},
		"string":    {bsontest.Value(b, `"request served in 12 ms"`), bsontest.Value(b, `"request served in 13 ms"`)},
		"document":  {bsontest.Value(b, logLine), bsontest.Value(b, logLine)},
	}
}

func BenchmarkCompare(b *testing.B) {
	for name, pair := range samples(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bson.Compare(pair[0], pair[1])
			}
		})
	}
}

func BenchmarkAppendKey(b *testing.B) {
	for name, pair := range samples(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var buf []byte
			for b.Loop() {
				buf = bson.AppendKey(buf[:0], pair[0], false)
			}
		})
	}
}

func BenchmarkElements(b *testing.B) {
	doc := bsontest.Doc(b, logLine)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		it := bson.Elements(doc)
		for it.Next() {
			n += len(it.Key())
		}
	}
	if n == 0 {
		b.Fatal("no keys")
	}
}
