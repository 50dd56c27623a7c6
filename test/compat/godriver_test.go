package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// runGoDriver is the sequence of the scripts with the official Go driver.
func runGoDriver(t *testing.T, uri, phase string, databases []string) []line {
	client := connect(t, uri)
	var lines []line
	for _, name := range databases {
		s := &goSequence{t: t, client: client, db: client.Database(name)}
		if phase == "left" {
			left := s.count(s.db.Collection("flights"), bson.M{})
			lines = append(lines, line{Left: &left})
			continue
		}
		lines = append(lines, line{Figures: s.figures(), Own: s.own("own_go")})
	}
	return lines
}

type goSequence struct {
	t      *testing.T
	client *mongo.Client
	db     *mongo.Database
}

// must ends the test on an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (s *goSequence) count(c *mongo.Collection, filter any) int64 {
	return must(c.CountDocuments(s.t.Context(), filter))
}

// all reads a cursor to its end.
func all[T any](ctx context.Context, c *mongo.Cursor, err error) []T {
	var docs []T
	must(0, errors.Join(err, must(c, err).All(ctx, &docs)))
	return docs
}

func date(month, day int) time.Time {
	return time.Date(2001, time.Month(month), day, 0, 0, 0, 0, time.UTC)
}

func (s *goSequence) figures() *figures {
	ctx, c := s.t.Context(), s.db.Collection("flights")
	week := bson.D{{Key: "date", Value: bson.D{{Key: "$gte", Value: date(1, 15)}, {Key: "$lt", Value: date(1, 22)}}}}
	f := &figures{
		Count:     s.count(c, bson.D{}),
		Estimated: must(c.EstimatedDocumentCount(ctx)),
		Day:       s.count(c, bson.M{"date": bson.M{"$gte": date(1, 15), "$lt": date(1, 16)}}),
	}
	cursor, err := c.Find(ctx, week)
	f.Week = int64(len(all[bson.Raw](ctx, cursor, err)))
	f.Explained = s.explained(c, week)
	type group struct {
		Origin string `bson:"_id"`
		N      int64  `bson:"n"`
	}
	cursor, err = c.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: week}},
		{{Key: "$group", Value: bson.M{"_id": "$origin", "n": bson.M{"$sum": 1}}}},
		{{Key: "$sort", Value: bson.D{{Key: "n", Value: -1}, {Key: "_id", Value: 1}}}},
		{{Key: "$limit", Value: 3}},
	})
	for _, g := range all[group](ctx, cursor, err) {
		f.Busiest = append(f.Busiest, [2]any{g.Origin, float64(g.N)})
	}
	cursor, err = c.Find(ctx, bson.D{}, options.Find().SetSort(bson.M{"delay": -1}).SetLimit(3).SetProjection(bson.M{"_id": 1}))
	for _, d := range all[flight](ctx, cursor, err) {
		f.Longest = append(f.Longest, d.ID)
	}
	midnight := time.Date(2018, 1, 30, 16, 0, 0, 0, time.UTC) // of January 31 in Shanghai
	for i := range 8 {
		from := midnight.Add(time.Duration(i) * 24 * time.Hour).UnixMilli()
		f.Quakes = append(f.Quakes, s.count(s.db.Collection("quakes"), bson.M{"time": bson.M{"$gte": from, "$lt": from + 24*3600*1000}}))
	}
	return f
}

// explained returns the partitions that an explained find concerns.
func (s *goSequence) explained(c *mongo.Collection, filter any) []string {
	var explained struct {
		QueryPlanner struct {
			WinningPlan struct {
				Shards []struct {
					Partition string `bson:"partition"`
				} `bson:"shards"`
			} `bson:"winningPlan"`
		} `bson:"queryPlanner"`
	}
	command := bson.D{{Key: "explain", Value: bson.D{{Key: "find", Value: c.Name()}, {Key: "filter", Value: filter}}}, {Key: "verbosity", Value: "queryPlanner"}}
	must(0, s.db.RunCommand(s.t.Context(), command).Decode(&explained))
	var names []string
	for _, shard := range explained.QueryPlanner.WinningPlan.Shards {
		names = append(names, shard.Partition)
	}
	return names
}

// own runs what an application does on a collection of its own.
func (s *goSequence) own(name string) *own {
	ctx, c, r := s.t.Context(), s.db.Collection(name), &own{}
	docs := documents(s.t)
	must(0, c.Drop(ctx))
	r.Inserted = int64(len(must(c.InsertMany(ctx, docs)).InsertedIDs))
	cursor, err := c.Find(ctx, bson.D{})
	r.Found = int64(len(all[bson.Raw](ctx, cursor, err)))
	cursor, err = c.Find(ctx, bson.D{}, options.Find().SetBatchSize(7))
	for _, f := range all[flight](ctx, cursor, err) {
		r.Sum += f.ID
	}
	r.Index = must(c.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.M{"delay": 1}}))
	r.Indexes = s.indexes(c)
	s.update(c, r)
	s.remove(c, r)
	s.bulk(c, r, docs[4])
	s.read(c, r)
	s.session(c, r)
	r.Unknown = code(c.FindOne(ctx, bson.M{"a": bson.M{"$nope": 1}}).Err())
	r.Collections = must(s.db.ListCollectionNames(ctx, bson.D{}))
	slices.Sort(r.Collections)
	r.Database = slices.Contains(must(s.client.ListDatabaseNames(ctx, bson.D{})), s.db.Name())
	must(0, c.Indexes().DropOne(ctx, "delay_1"))
	r.Left = int64(len(s.indexes(c)))
	must(0, c.Drop(ctx))
	r.Gone = int64(len(must(s.db.ListCollectionNames(ctx, bson.M{"name": name}))))
	return r
}

func (s *goSequence) indexes(c *mongo.Collection) []string {
	var names []string
	for _, i := range must(c.Indexes().ListSpecifications(s.t.Context())) {
		names = append(names, i.Name)
	}
	return names
}

// key is the fields that decide where a document of a client's own belongs.
func key(id int, more ...bson.E) bson.D {
	return append(bson.D{{Key: "_id", Value: id}, {Key: "date", Value: date(1, 3)}, {Key: "origin", Value: "ORD"}}, more...)
}

func (s *goSequence) update(c *mongo.Collection, r *own) {
	ctx := s.t.Context()
	one := must(c.UpdateOne(ctx, bson.M{"_id": 5}, bson.M{"$inc": bson.M{"delay": 1000}}))
	r.ByID = [2]int64{one.MatchedCount, one.ModifiedCount}
	r.Many = must(c.UpdateMany(ctx, bson.M{"origin": "ORD"}, bson.M{"$set": bson.M{"seen": true}})).ModifiedCount
	var sixth bson.M
	must(0, c.FindOne(ctx, bson.M{"_id": 6}).Decode(&sixth))
	r.Replaced = must(c.ReplaceOne(ctx, bson.M{"_id": 6}, bson.M{"date": sixth["date"], "origin": sixth["origin"], "delay": 2000})).ModifiedCount
	var after struct {
		ID  int64 `bson:"_id"`
		Top bool  `bson:"top"`
	}
	o := options.FindOneAndUpdate().SetSort(bson.M{"delay": -1}).SetReturnDocument(options.After)
	must(0, c.FindOneAndUpdate(ctx, bson.M{"delay": bson.M{"$gte": 1000}}, bson.M{"$set": bson.M{"top": true}}, o).Decode(&after))
	r.After = [2]any{float64(after.ID), after.Top}
}

func (s *goSequence) remove(c *mongo.Collection, r *own) {
	ctx := s.t.Context()
	var removed flight
	must(0, c.FindOneAndDelete(ctx, bson.M{}, options.FindOneAndDelete().SetSort(bson.M{"_id": -1})).Decode(&removed))
	r.Removed = removed.ID
	upserted := must(c.UpdateOne(ctx, key(9001), bson.M{"$set": bson.M{"delay": 1}}, options.UpdateOne().SetUpsert(true)))
	id, _ := upserted.UpsertedID.(int32)
	r.Upserted = int64(id)
}

func (s *goSequence) bulk(c *mongo.Collection, r *own, fifth any) {
	ctx := s.t.Context()
	bulk := must(c.BulkWrite(ctx, []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(key(9002, bson.E{Key: "delay", Value: 2})),
		mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": 7}).SetUpdate(bson.M{"$set": bson.M{"bulk": true}}),
		mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": 8}),
	}, options.BulkWrite().SetOrdered(false)))
	r.Bulk = [3]int64{bulk.InsertedCount, bulk.ModifiedCount, bulk.DeletedCount}
	_, err := c.InsertOne(ctx, fifth)
	var one mongo.WriteException
	if errors.As(err, &one) && mongo.IsDuplicateKeyError(err) {
		r.Duplicate = [2]any{fmt.Sprintf("%T", one), float64(one.WriteErrors[0].Code)}
	}
	_, err = c.InsertMany(ctx, []any{fifth, key(9003, bson.E{Key: "delay", Value: 3})}, options.InsertMany().SetOrdered(false))
	var several mongo.BulkWriteException
	if errors.As(err, &several) && mongo.IsDuplicateKeyError(err) {
		r.BulkDuplicate = [3]any{fmt.Sprintf("%T", several), float64(several.WriteErrors[0].Code), float64(2 - len(several.WriteErrors))}
	}
}

func (s *goSequence) read(c *mongo.Collection, r *own) {
	ctx := s.t.Context()
	r.Delayed = s.count(c, bson.M{"delay": bson.M{"$gt": 60}})
	r.Estimated = must(c.EstimatedDocumentCount(ctx))
	var origins []string
	must(0, c.Distinct(ctx, "origin", bson.D{}).Decode(&origins))
	r.Origins = int64(len(origins))
	cursor, err := c.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$group", Value: bson.M{"_id": nil, "n": bson.M{"$sum": 1}, "delay": bson.M{"$sum": "$delay"}}}},
	})
	for _, total := range all[struct{ N, Delay int64 }](ctx, cursor, err) {
		r.Total = [2]int64{total.N, total.Delay}
	}
}

func (s *goSequence) session(c *mongo.Collection, r *own) {
	session := must(s.client.StartSession())
	defer session.EndSession(context.Background())
	must(0, mongo.WithSession(s.t.Context(), session, func(ctx context.Context) error {
		must(c.InsertOne(ctx, key(9004, bson.E{Key: "delay", Value: 4})))
		var found flight
		must(0, c.FindOne(ctx, bson.M{"_id": 9004}).Decode(&found))
		r.Session = found.ID
		must(0, session.StartTransaction())
		_, err := c.InsertOne(ctx, key(9005))
		r.Transaction = code(err)
		// The transaction never began on the server, so there is nothing to abort.
		_ = session.AbortTransaction(ctx)
		return nil
	}))
}

// code is the code of a server's error, as JSON has it; nil for any other.
func code(err error) any {
	var server mongo.ServerError
	if errors.As(err, &server) && len(server.ErrorCodes()) > 0 {
		return float64(server.ErrorCodes()[0])
	}
	return nil
}

// documents are the first flights, as a client inserts them.
func documents(t *testing.T) []any {
	t.Helper()
	var docs []any
	for _, raw := range firstLines(t) {
		var doc bson.D
		if err := bson.UnmarshalExtJSON(raw, false, &doc); err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
	return docs
}
