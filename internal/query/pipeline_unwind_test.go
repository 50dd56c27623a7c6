package query

import (
	"context"
	"errors"
	"testing"

	"oxbow/internal/bson"
)

// Two $unwind make many documents of one while nothing is read from below: only they themselves can end it.
func TestUnwindIsInterrupted(t *testing.T) {
	stages := value(t, `[{"$project": {"x": {"$range": [0, 100]}, "y": {"$range": [0, 100]}}}, {"$unwind": "$x"}, {"$unwind": "$y"}, {"$match": {"x": -1}}]`)
	p, err := ParsePipeline(stages.Data, PipelineOptions{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := p.Run(&listed{docs: []bson.Document{{5, 0, 0, 0, 0}}})
	defer out.Close()
	if doc, err := out.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted pipeline gives %x, %v", doc, err)
	}
}
