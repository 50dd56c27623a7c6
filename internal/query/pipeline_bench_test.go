package query

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"oxbow/internal/bson"
)

// repeated gives documents over and over, n in all, without copying them.
type repeated struct {
	docs []bson.Document
	n    int
}

func (r *repeated) Next(context.Context) (bson.Document, error) {
	if r.n == 0 {
		return nil, nil
	}
	r.n--
	return r.docs[r.n%len(r.docs)], nil
}

func (r *repeated) Close() error { return nil }

// logLines are documents of about 200 bytes.
func logLines(b *testing.B) []bson.Document {
	docs := make([]bson.Document, 1000)
	for i := range docs {
		docs[i] = document(b, fmt.Sprintf(`{"_id": {"$oid": "65ba1e60%016x"}, "time": %d, "device": "dev-%03d", "level": %d, "ms": %d.5, "msg": "%s"}`,
			i, 1700000000+i, i%100, i%4, i%500, strings.Repeat("m", 115)))
	}
	if n := len(docs[0]); n < 190 || n > 210 {
		b.Fatal("documents of", n, "bytes")
	}
	return docs
}

func BenchmarkPipeline(b *testing.B) {
	docs := logLines(b)
	for name, source := range map[string]string{
		"match-group":      `[{"$match": {"level": {"$gte": 1}}}, {"$group": {"_id": "$device", "n": {"$sum": 1}, "ms": {"$avg": "$ms"}}}]`,
		"expr-match-count": `[{"$match": {"$expr": {"$gt": ["$ms", {"$multiply": ["$level", 100]}]}}}, {"$count": "n"}]`,
		"sort-limit":       `[{"$sort": {"ms": -1}}, {"$limit": 10}]`,
		"project":          `[{"$project": {"day": {"$subtract": ["$time", {"$mod": ["$time", 86400]}]}, "level": 1}}]`,
	} {
		b.Run(name, func(b *testing.B) {
			p, err := ParsePipeline(value(b, source).Data, PipelineOptions{MaxBytes: 100 << 20})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			b.ResetTimer()
			out := p.Run(&repeated{docs, b.N})
			for {
				doc, err := out.Next(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				if doc == nil {
					break
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "docs/s")
		})
	}
}

func BenchmarkExpression(b *testing.B) {
	doc := logLines(b)[0]
	for name, source := range map[string]string{
		"field":   `"$ms"`,
		"compare": `{"$and": [{"$gte": ["$time", 5]}, {"$lt": ["$level", 100]}]}`,
		"numbers": `{"$add": [{"$multiply": ["$level", 2]}, {"$subtract": ["$ms", 1]}]}`,
		"object":  `{"d": "$device", "l": "$level"}`,
	} {
		b.Run(name, func(b *testing.B) {
			e, err := ParseExpression(value(b, source), Env{})
			if err != nil {
				b.Fatal(err)
			}
			var s Scratch
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.Eval(doc, &s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
