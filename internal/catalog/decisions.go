package catalog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/route"
)

// decisionsStored is the catalog's collection of what gateways decided about partitions, where they share the catalog:
//
//	{_id: "backend/database.collection#change", ns, partition: string, change: int64, from, to: string, by: string, at: date, version: int64,
//	 end, since: int64 (ms)}
//
// change counts the versions of the partition's document; of one version there is one decision, whoever writes it down. from is "" for a new partition, to is
// "gone" for one that was dropped. version is the catalog's, as the gateway had seen it. end is the end of the partition's range, since when it came into
// its state by the clock that retention goes by. The latest keptDecisions are kept.
const decisionsStored = "decisions"

// gone is what a partition becomes that is dropped and forgotten.
const gone = "gone"

// keptDecisions is how many decisions are kept at least, and pruneEvery after how many of its own a gateway looks for older ones.
const (
	keptDecisions = 100_000
	pruneEvery    = 1_000
)

// decision is one step of a partition.
type decision struct {
	route.Partition        // as it is stored then
	from, to        string // states
	by              string
}

// decided returns the decisions that brought partitions into their states.
func decided(partitions []route.Partition) (list []decision) {
	for _, p := range partitions {
		if p.Change <= 0 {
			continue
		}
		d := decision{Partition: p, to: p.State.String(), by: p.By}
		if p.State != route.Creating {
			d.from = p.Was.String()
		}
		list = append(list, d)
	}
	return list
}

// note writes decisions down, where several gateways make them. What could not be written is in the log: the decision stands.
func (c *Catalog) note(ctx context.Context, ns string, list []decision) {
	if c.members == nil || len(list) == 0 {
		return
	}
	c.members.mu.Lock()
	version := c.members.seen
	c.members.mu.Unlock()
	docs := make([]bson.Document, len(list))
	for i, d := range list {
		docs[i] = decisionDocument(ns, d, c.now(), version)
	}
	// Decisions stand when their client has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.members.lease)
	defer cancel()
	err := c.store.insert(ctx, decisionsStored, docs)
	if err != nil && !mongoerr.Is(err, mongoerr.DuplicateKey) {
		c.log.Warn("decisions about partitions could not be noted", "collection", ns, "error", err)
		return
	}
	if n := c.noted.Add(int64(len(docs))); n/pruneEvery != (n-int64(len(docs)))/pruneEvery {
		if err := c.pruneDecisions(ctx); err != nil {
			c.log.Warn("old decisions could not be removed", "error", err)
		}
	}
}

func decisionDocument(ns string, d decision, now time.Time, version int64) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "_id", fmt.Sprintf("%s#%d", partitionID(d.Partition), d.Change))
	dst = bsoncore.AppendStringElement(dst, "ns", ns)
	dst = bsoncore.AppendStringElement(dst, "partition", d.Name())
	dst = bsoncore.AppendInt64Element(dst, "change", d.Change)
	dst = bsoncore.AppendStringElement(dst, "from", d.from)
	dst = bsoncore.AppendStringElement(dst, "to", d.to)
	dst = bsoncore.AppendStringElement(dst, "by", d.by)
	dst = bsoncore.AppendDateTimeElement(dst, "at", now.UnixMilli())
	dst = bsoncore.AppendInt64Element(dst, "version", version)
	dst = bsoncore.AppendInt64Element(dst, "end", d.End)
	dst = bsoncore.AppendInt64Element(dst, "since", d.Since)
	return ended(dst, at)
}

// pruneDecisions removes the decisions that are older than the latest keptDecisions.
func (c *Catalog) pruneDecisions(ctx context.Context) error {
	docs, err := c.store.on.read(ctx, c.store.database, func(dst []byte) []byte {
		dst = bsoncore.AppendStringElement(dst, "find", decisionsStored)
		at, dst := bsoncore.AppendDocumentElementStart(dst, "sort")
		dst = ended(bsoncore.AppendInt32Element(dst, "at", -1), at)
		at, dst = bsoncore.AppendDocumentElementStart(dst, "projection")
		dst = ended(bsoncore.AppendInt32Element(dst, "at", 1), at)
		dst = bsoncore.AppendInt64Element(dst, "skip", keptDecisions)
		return bsoncore.AppendInt64Element(dst, "limit", 1)
	})
	if err != nil || len(docs) == 0 {
		return err
	}
	at, _ := bson.Get(docs[0], "at")
	start, dst := bsoncore.AppendDocumentStart(nil)
	q, dst := bsoncore.AppendDocumentElementStart(dst, "q")
	older, dst := bsoncore.AppendDocumentElementStart(dst, "at")
	dst = bsoncore.AppendValueElement(dst, "$lt", at)
	dst = ended(ended(dst, older), q)
	dst = bsoncore.AppendInt32Element(dst, "limit", 0)
	_, err = c.store.write(ctx, "delete", decisionsStored, "deletes", []bson.Document{ended(dst, start)})
	return err
}

// storePartitions stores partitions in place of others, and returns them as they are stored now. The decisions before these are written down once more, in
// case that whoever made one was cut off before it was.
func (c *Catalog) storePartitions(ctx context.Context, ns string, before, after []route.Partition) ([]route.Partition, error) {
	for i := range after {
		after[i].Was = before[i].State
	}
	after, err := c.store.swapPartitions(ctx, ns, after)
	if err != nil {
		return nil, err
	}
	c.note(ctx, ns, append(decided(before), decided(after)...))
	return after, nil
}

// forget forgets partitions that were dropped. That is decided before their documents go, since nobody could write it down afterwards; another
// gateway may do the same at the same time.
func (c *Catalog) forget(ctx context.Context, ns string, dropped []route.Partition) error {
	c.note(ctx, ns, append(decided(dropped), c.dropped(dropped)...))
	if err := c.store.deletePartitions(ctx, dropped); !errors.Is(err, errLost) {
		return err
	}
	return nil
}

// dropped are the decisions that partitions are gone.
func (c *Catalog) dropped(partitions []route.Partition) (list []decision) {
	for _, p := range partitions {
		d := decision{Partition: p, from: p.State.String(), to: gone, by: c.members.self()}
		d.Change = max(0, d.Change) + 1
		list = append(list, d)
	}
	return list
}
