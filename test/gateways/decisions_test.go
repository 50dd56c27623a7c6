package gateways

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// decision is one as the catalog keeps it.
type decision struct {
	Partition string
	Change    int64
	From, To  string
	By        string
	At        time.Time
	End       int64
	Since     int64
}

// partition is one as the catalog keeps it.
type partition struct {
	Database, Collection string
	State                string
	Start, End           int64
}

// checkDecisions proves from the log of decisions that each partition was made once, turned in order and not before its time, and that the server has what
// the catalog says. Retention goes on meanwhile: what is compared is read until it stands still.
func (r *rig) checkDecisions(t *testing.T) {
	t.Helper()
	var list []decision
	r.eventually(t, "the catalog and the server agree", func(ctx context.Context) error {
		before, err := readAll[partition](ctx, r.server.Database(catalog).Collection("partitions"))
		if err != nil {
			return err
		}
		there, err := r.server.Database(database).ListCollectionNames(ctx, bson.D{})
		if err != nil {
			return err
		}
		if list, err = readAll[decision](ctx, r.server.Database(catalog).Collection("decisions")); err != nil {
			return err
		}
		after, err := readAll[partition](ctx, r.server.Database(catalog).Collection("partitions"))
		if err != nil {
			return err
		}
		if !slices.Equal(before, after) {
			return fmt.Errorf("partitions change")
		}
		return agree(after, there)
	})
	byName := map[string][]decision{}
	for _, d := range list {
		byName[d.Partition] = append(byName[d.Partition], d)
	}
	counts := map[string]int{}
	by := map[string]bool{}
	ends := map[int64]bool{} // of the ranges
	for name, steps := range byName {
		slices.SortFunc(steps, func(a, b decision) int { return cmp.Compare(a.Change, b.Change) })
		if why := wrong(steps); why != "" {
			t.Errorf("%s: %s: %s", name, why, describe(steps))
		}
		for _, d := range steps {
			counts[d.To]++
			by[d.By] = true
		}
		if strings.HasSuffix(name, "_0") {
			ends[steps[0].End] = true
		} else if !strings.HasSuffix(name, "_1") {
			t.Errorf("%s was made another time", name)
		}
	}
	for end := range ends {
		if end%time.Minute.Milliseconds() != 0 {
			t.Errorf("a range ends at %d", end)
		}
	}
	for _, d := range r.written.acknowledged {
		if !ends[d.end().UnixMilli()] {
			t.Errorf("document %d of %s was acknowledged, and its range was never made", d.id, clockTime(d.at))
		}
	}
	t.Logf("%d partitions: %v, decided by %d gateways, of which processes come back as others", len(byName), counts, len(by))
	if counts["gone"] == 0 {
		t.Error("no partition was dropped")
	}
}

// agree compares the partitions of the catalog with the collections of the server.
func agree(catalog []partition, there []string) error {
	var want []string
	for _, p := range catalog {
		if p.State == "creating" || p.State == "dropping" {
			return fmt.Errorf("%s is %s", p.Collection, p.State)
		}
		want = append(want, p.Collection)
	}
	slices.Sort(want)
	slices.Sort(there)
	if !slices.Equal(want, there) {
		return fmt.Errorf("the catalog has the partitions %q, the server the collections %q", want, there)
	}
	return nil
}

// wrong says what is wrong with the decisions about one partition, or "".
func wrong(steps []decision) string {
	order := []string{"", "creating", "active", "hidden", "dropping", "gone"}
	var hidden decision
	for i, d := range steps {
		switch {
		case i+1 >= len(order) || d.Change != int64(i+1):
			return fmt.Sprintf("decision %d is missing, or made twice", i+1)
		case d.From != order[i] || d.To != order[i+1]:
			return fmt.Sprintf("it went from %q to %q", d.From, d.To)
		}
		at := time.UnixMilli(d.Since)
		switch d.To {
		case "hidden":
			hidden = d
			if least := time.UnixMilli(d.End).Add(keep); at.Before(least) {
				return fmt.Sprintf("it was hidden %s early", least.Sub(at))
			}
		case "dropping":
			if least := time.UnixMilli(hidden.Since).Add(hold); at.Before(least) {
				return fmt.Sprintf("it was dropped %s early", least.Sub(at))
			}
		}
	}
	return ""
}

func describe(steps []decision) string {
	var list []string
	for _, d := range steps {
		list = append(list, fmt.Sprintf("%d %s→%s by %s", d.Change, d.From, d.To, d.By))
	}
	return strings.Join(list, ", ")
}

func readAll[T any](ctx context.Context, c *mongo.Collection) (list []T, err error) {
	cursor, err := c.Find(ctx, bson.D{})
	if err == nil {
		err = cursor.All(ctx, &list)
	}
	return list, err
}
