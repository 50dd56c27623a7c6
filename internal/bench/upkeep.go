package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Event is one thing that the gateway did to a partition, as its command upkeepHistory tells.
type Event struct {
	At        time.Time `bson:"at" json:"at"` // when it was done, by the server's clock
	Partition string    `bson:"partition" json:"partition"`
	Action    string    `bson:"action" json:"action"` // made, hidden, dropped, stopped, failed
	Reason    string    `bson:"reason" json:"reason"`
	Micros    int64     `bson:"micros" json:"micros"` // of work
	Error     string    `bson:"error" json:"error,omitempty"`
}

// Took is how long the work took.
func (e *Event) Took() time.Duration { return time.Duration(e.Micros) * time.Microsecond }

// Did reports whether an event tells that an action was done, and not that it failed.
func (e *Event) Did(action string) bool { return e.Action == action && e.Error == "" }

// upkeep collects the events of a run; the gateway itself keeps only the latest.
type upkeep struct {
	collection *mongo.Collection
	start      time.Time // by the server's clock

	mu     sync.Mutex
	absent bool // the server is no gateway, or the collection has no layout
	since  time.Time
	events []Event
}

func newUpkeep(c *mongo.Collection, ahead time.Duration, start time.Time) *upkeep {
	return &upkeep{collection: c, start: start.Add(ahead), since: start.Add(ahead)}
}

// Codes of a server that knows no upkeepHistory, and of a gateway for a collection without a layout.
const (
	commandNotFound   = 59
	namespaceNotFound = 26
)

// poll asks for news and returns all events since the start.
func (u *upkeep) poll(ctx context.Context) ([]Event, error) {
	u.mu.Lock()
	since, absent := u.since, u.absent
	u.mu.Unlock()
	if absent {
		return nil, nil
	}
	var news struct {
		Events []Event `bson:"events"`
	}
	err := u.collection.Database().RunCommand(ctx, bson.D{{Key: "upkeepHistory", Value: u.collection.Name()}, {Key: "since", Value: since}}).Decode(&news)
	u.mu.Lock()
	defer u.mu.Unlock()
	var refused mongo.CommandError
	if errors.As(err, &refused) && (refused.Code == commandNotFound || refused.Code == namespaceNotFound) {
		u.absent = true
		return nil, nil
	}
	if err != nil {
		return slices.Clone(u.events), fmt.Errorf("ask what became of partitions: %w", err)
	}
	for _, e := range news.Events {
		if !slices.Contains(u.events, e) {
			u.events = append(u.events, e)
		}
		if e.At.After(u.since) {
			u.since = e.At
		}
	}
	return slices.Clone(u.events), nil
}

// there reports whether the server is a gateway and the collection has a layout, as far as is known.
func (u *upkeep) there() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return !u.absent
}

// Server is what a report says of the other side.
type Server struct {
	Version string        // MongoDB's, that it answers as
	Ahead   time.Duration // of its clock before this machine's
}

// Describe asks the server for its version and time.
func Describe(ctx context.Context, client *mongo.Client) (Server, error) {
	admin := client.Database("admin")
	var build struct {
		Version string `bson:"version"`
	}
	if err := admin.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&build); err != nil {
		return Server{}, fmt.Errorf("ask for the server's version: %w", err)
	}
	var hello struct {
		LocalTime time.Time `bson:"localTime"`
	}
	before := time.Now()
	if err := admin.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		return Server{}, fmt.Errorf("ask for the server's time: %w", err)
	}
	there := time.Since(before)
	s := Server{Version: build.Version}
	// Less than the round trip and a window means nothing.
	if ahead := hello.LocalTime.Sub(before.Add(there / 2)); ahead.Abs() > there+window/10 {
		s.Ahead = ahead
	}
	return s, nil
}

// Storage is the size of the embedded engine's files.
type Storage struct {
	TableBytes int64 `json:"tableBytes"` // documents and indexes
	LogBytes   int64 `json:"logBytes"`   // the write-ahead log, which dropping a partition does not shrink
}

// Stored sums up the stores of a gateway's backends; nil if the server tells of none.
func Stored(ctx context.Context, client *mongo.Client) (*Storage, error) {
	var status struct {
		Oxbow *struct {
			Storage map[string]struct {
				TableBytes int64 `bson:"tableBytes"`
				LogBytes   int64 `bson:"logBytes"`
			} `bson:"storage"`
		} `bson:"oxbow"`
	}
	if err := client.Database("admin").RunCommand(ctx, bson.D{{Key: "serverStatus", Value: 1}}).Decode(&status); err != nil {
		return nil, fmt.Errorf("ask for the store's size: %w", err)
	}
	if status.Oxbow == nil {
		return nil, nil
	}
	var sum Storage
	for _, b := range status.Oxbow.Storage {
		sum.TableBytes += b.TableBytes
		sum.LogBytes += b.LogBytes
	}
	return &sum, nil
}
