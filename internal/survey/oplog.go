package survey

import (
	"context"
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/deployment"
)

// oplogSample is how many entries of a log tell its peak.
const oplogSample = 1000

// oplog asks for a set's log: its size, the time that it covers, and the hour in which most was written, by a sample of its entries.
func (g *gathering) oplog(ctx context.Context, set string) {
	r, ok := g.oplogReader(set)
	if !ok {
		return
	}
	o := Oplog{Set: set, Member: r.host}
	stats, err := r.ask(ctx, "local", func(dst []byte) []byte { return bsoncore.AppendStringElement(dst, "collStats", "oplog.rs") })
	if err != nil {
		g.missing("the oplog of "+set, err)
		return
	}
	o.SizeBytes, o.UsedBytes = figure(stats, "maxSize"), figure(stats, "size")
	for _, end := range []struct {
		direction int32
		to        *time.Time
	}{{1, &o.First}, {-1, &o.Last}} {
		docs, err := r.find(ctx, "local", "oplog.rs", nil, "$natural", end.direction, 1)
		if err != nil {
			g.missing("the times of the oplog of "+set, err)
			return
		}
		if len(docs) > 0 {
			*end.to, _ = entryTime(docs[0])
		}
	}
	sample, err := r.sample(ctx, "local", "oplog.rs", oplogSample)
	if err != nil {
		g.missing("a sample of the oplog of "+set, err)
	}
	o.PeakHourBytes, o.Sampled = peakHour(&o, sample)
	g.survey.Oplogs = append(g.survey.Oplogs, o)
}

// oplogReader picks the quietest member of a set.
func (g *gathering) oplogReader(set string) (reader, bool) {
	best := -1
	for i, m := range g.survey.Members {
		if _, known := g.by[m.Host]; !known || m.Set != set {
			continue
		}
		if best < 0 || m.state == deployment.Secondary && (m.Hidden || g.survey.Members[best].state == deployment.Primary) {
			best = i
		}
	}
	if best < 0 {
		return reader{}, false
	}
	return g.by[g.survey.Members[best].Host], true
}

func entryTime(entry bson.Document) (time.Time, bool) {
	v, _ := bson.Get(entry, "ts")
	seconds, _, ok := v.TimestampOK()
	return time.Unix(int64(seconds), 0).UTC(), ok
}

// peakHour returns the bytes of the hour in which most was written, about: a sample's largest share by hour, or by as many hours as make leastBucket entries
// likely, of what the log holds; and without a sample the average. A sample of fewer entries than leastSample tells nothing.
func peakHour(o *Oplog, sample []bson.Document) (Figure, int) {
	covers := o.Last.Sub(o.First)
	if !o.UsedBytes.Reported || covers <= 0 {
		return Figure{}, 0
	}
	hours := covers.Hours()
	average := int64(float64(o.UsedBytes.Value) / hours)
	if len(sample) < leastSample || hours < 1 {
		return Known(average), 0
	}
	bucket := max(1, int64(math.Ceil(hours*leastBucket/float64(len(sample)))))
	var total int64
	by := map[int64]int64{}
	for _, entry := range sample {
		at, _ := entryTime(entry)
		by[at.Unix()/(3600*bucket)] += int64(len(entry))
		total += int64(len(entry))
	}
	var most int64
	for _, n := range by {
		most = max(most, n)
	}
	return Known(max(average, int64(float64(o.UsedBytes.Value)*float64(most)/float64(total)/float64(bucket)))), len(sample)
}

const (
	leastSample = 100
	leastBucket = 40
)
