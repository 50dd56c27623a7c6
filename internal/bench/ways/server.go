package ways

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"oxbow/internal/bench"
)

// figures are what a server tells of itself at one moment; nil: it does not.
type figures struct {
	disk  *int64   // bytes of tables or files
	lag   *float64 // seconds that its worst member is behind
	oplog *int64   // bytes written to the oplog since the server started
}

// server asks for figures. A question that the server refused once is not asked again.
type server struct {
	place *Place
	deaf  map[string]bool
}

func newServer(p *Place) *server { return &server{p, make(map[string]bool)} }

// look asks for all figures. An error is one of the connection.
func (s *server) look(ctx context.Context) (figures, error) {
	var f figures
	var err error
	if f.disk, err = s.disk(ctx); err != nil {
		return f, err
	}
	status, err := s.ask(ctx, "admin", bson.D{{Key: "replSetGetStatus", Value: 1}})
	if err != nil {
		return f, err
	}
	f.lag = lagOf(status)
	stats, err := s.ask(ctx, "local", bson.D{{Key: "collStats", Value: "oplog.rs"}})
	f.oplog = oplogOf(stats)
	return f, err
}

// disk is what an Oxbow's tables take, or what a server has in files for the place's database.
func (s *server) disk(ctx context.Context) (*int64, error) {
	if store, err := bench.Stored(ctx, s.place.Client); err != nil {
		return nil, err
	} else if store != nil {
		return &store.TableBytes, nil
	}
	stats, err := s.ask(ctx, s.place.Database, bson.D{{Key: "dbStats", Value: 1}})
	if err != nil || stats == nil {
		return nil, err
	}
	storage, ok := number(stats, "storageSize")
	if !ok {
		return nil, nil
	}
	indexes, _ := number(stats, "indexSize")
	disk := int64(storage + indexes)
	return &disk, nil
}

// ask runs a command and returns its reply, nil where the server refuses it.
func (s *server) ask(ctx context.Context, database string, command bson.D) (bson.Raw, error) {
	name := command[0].Key
	if s.deaf[name] {
		return nil, nil
	}
	reply, err := s.place.Client.Database(database).RunCommand(ctx, command).Raw()
	var refused mongo.CommandError
	if errors.As(err, &refused) {
		s.deaf[name] = true
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return reply, nil
}

// lagOf reads from the reply of replSetGetStatus how far the worst secondary is behind the primary, in seconds
// (https://www.mongodb.com/docs/manual/reference/command/replSetGetStatus/, members[n].optimeDate). nil: there is no secondary.
func lagOf(status bson.Raw) *float64 {
	var s struct {
		Members []struct {
			State int       `bson:"state"`
			At    time.Time `bson:"optimeDate"`
		} `bson:"members"`
	}
	if status == nil || bson.Unmarshal(status, &s) != nil {
		return nil
	}
	const primary, secondary = 1, 2
	var last time.Time
	for _, m := range s.Members {
		if m.State == primary {
			last = m.At
		}
	}
	var worst *float64
	for _, m := range s.Members {
		if behind := max(0, last.Sub(m.At).Seconds()); m.State == secondary && !last.IsZero() && (worst == nil || behind > *worst) {
			worst = &behind
		}
	}
	return worst
}

// oplogOf reads from the reply of collStats on the oplog how many bytes were inserted into it since the server started: WiredTiger's own count, since the
// size of a capped collection stops to grow (https://www.mongodb.com/docs/manual/reference/command/collStats/, wiredTiger).
func oplogOf(stats bson.Raw) *int64 {
	if stats == nil {
		return nil
	}
	n, ok := number(stats, "wiredTiger", "cursor", "insert key and value bytes")
	if !ok {
		return nil
	}
	bytes := int64(n)
	return &bytes
}

func number(doc bson.Raw, path ...string) (float64, bool) {
	v, err := doc.LookupErr(path...)
	if err != nil {
		return 0, false
	}
	return v.AsFloat64OK()
}

// MemoryOf asks a server what it may take: the memory of its machine, or of its container where that is less
// (https://www.mongodb.com/docs/manual/reference/command/hostInfo/, system.memLimitMB).
func MemoryOf(ctx context.Context, client *mongo.Client) Memory {
	reply, err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "hostInfo", Value: 1}}).Raw()
	if err != nil {
		return Memory{By: "hostInfo: " + err.Error()}
	}
	n, ok := number(reply, "system", "memLimitMB")
	if !ok {
		return Memory{By: "hostInfo does not tell system.memLimitMB"}
	}
	return Memory{Bytes: int64(n) << 20, By: "hostInfo"}
}
