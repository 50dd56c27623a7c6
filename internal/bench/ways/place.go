package ways

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// Place is where one run's data lies: a collection, or with Daily a collection for each day, as applications make them that drop old days.
type Place struct {
	Client     *mongo.Client
	URI        string
	Database   string
	Collection string
	Split      Split
	Memory     Memory

	mu    sync.Mutex
	daily map[string]*mongo.Collection
}

// Split is how the data is split by time.
type Split int

// The ways to split.
const (
	Whole  Split = iota // one collection
	Layout              // one collection for clients, which the gateway splits into a partition a day
	Daily               // a collection a day, which clients choose themselves
)

// Memory is what the server may take.
type Memory struct {
	Bytes int64  `json:"bytes"` // 0: not known
	By    string `json:"by"`    // what limits it, or why nothing is known
	Group bool   `json:"group"` // a control group, page cache included
}

// Name is the collection that a document of a time lies in.
func (p *Place) Name(at time.Time) string {
	if p.Split != Daily {
		return p.Collection
	}
	return p.Collection + at.UTC().Format("060102")
}

func (p *Place) collection(at time.Time) *mongo.Collection {
	name := p.Name(at)
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.daily[name]
	if c == nil {
		if p.daily == nil {
			p.daily = make(map[string]*mongo.Collection)
		}
		c = p.Client.Database(p.Database).Collection(name)
		p.daily[name] = c
	}
	return c
}

// collections are those that documents from a time to another lie in, oldest first.
func (p *Place) collections(from, to time.Time) []*mongo.Collection {
	if p.Split != Daily {
		return []*mongo.Collection{p.collection(from)}
	}
	var all []*mongo.Collection
	for day := from.UTC().Truncate(24 * time.Hour); !day.After(to); day = day.AddDate(0, 0, 1) {
		all = append(all, p.collection(day))
	}
	return all
}

// count adds up the documents of all collections, from the server's counters or, with a filter, by looking at them.
func (p *Place) count(ctx context.Context, d *Data, filter bson.D) (int64, error) {
	var total int64
	for _, c := range p.collections(d.Start(), time.Now().Add(24*time.Hour)) {
		var n int64
		var err error
		if filter == nil {
			n, err = c.EstimatedDocumentCount(ctx)
		} else {
			n, err = c.CountDocuments(ctx, filter)
		}
		if err != nil {
			return 0, fmt.Errorf("count %s: %w", c.Name(), err)
		}
		total += n
	}
	return total, nil
}

// size is what the data takes: documents and indexes as they are, and on the disk. Index keys have no size of their own on a server that does not tell it.
func (p *Place) size(ctx context.Context, d *Data) (data, disk int64, err error) {
	for _, c := range p.collections(d.Start(), d.End) {
		var s struct {
			Size        float64 `bson:"size"`
			StorageSize float64 `bson:"storageSize"`
			IndexSize   float64 `bson:"totalIndexSize"`
		}
		err := c.Database().RunCommand(ctx, bson.D{{Key: "collStats", Value: c.Name()}}).Decode(&s)
		var refused mongo.CommandError
		if errors.As(err, &refused) && refused.Code == namespaceNotFound {
			continue
		}
		if err != nil {
			return 0, 0, fmt.Errorf("ask for the size of %s: %w", c.Name(), err)
		}
		data += int64(s.Size + s.IndexSize)
		disk += int64(s.StorageSize + s.IndexSize)
	}
	return data, disk, nil
}

// namespaceNotFound is the code of a server for a collection that is not there.
const namespaceNotFound = 26
