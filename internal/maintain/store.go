package maintain

import (
	"context"
	"errors"
	"fmt"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// DefaultDatabase is where jobs are kept that the command line runs.
const DefaultDatabase = "oxbow_jobs"

// The collections of the jobs' database.
const (
	jobsStored    = "jobs"
	historyStored = "job_history"
)

// ErrNoJob says that there is no job with an id.
var ErrNoJob = errors.New("there is no such job")

// errNonsense marks a document that is no job's.
var errNonsense = errors.New("has to be mended or removed")

// errLost says that the lease under which something was to be written is another's by now.
var errLost = errors.New("the lease was taken by another")

// Store keeps jobs in a database of the deployment that they work on. Safe for concurrent use.
//
// All changes are acknowledged by a majority. Those that come of running a job have the lease's token and owner in their filter, so that whoever has lost the
// lease changes nothing.
type Store struct {
	run      backend.Backend
	database string
}

// NewStore returns the store in a database.
func NewStore(b backend.Backend, database string) *Store { return &Store{run: b, database: database} }

// Put stores a job's specification, and makes the job if it is new. What was done of it stays, unless kind, namespace or parameters have changed: then
// it begins anew.
func (s *Store) Put(ctx context.Context, spec Spec) error {
	stored := spec.stored()
	_, err := s.update(ctx, jobsStored, driver.D{{Key: "_id", Value: spec.ID}}, driver.D{
		{Key: "$set", Value: driver.D{{Key: "spec", Value: stored}}},
		{Key: "$setOnInsert", Value: driver.D{
			{Key: "orders", Value: Orders{}}, {Key: "lease", Value: lease{}}, {Key: "of", Value: ""}, {Key: "state", Value: Waiting},
			{Key: "pass", Value: passed{Remaining: -1}}, {Key: "resumed", Value: int64(0)},
		}},
	}, true)
	if mongoerr.Is(err, mongoerr.DuplicateKey) { // two that make it at once
		_, err = s.update(ctx, jobsStored, driver.D{{Key: "_id", Value: spec.ID}}, driver.D{{Key: "$set", Value: driver.D{{Key: "spec", Value: stored}}}}, false)
	}
	if err != nil {
		return fmt.Errorf("store job %s: %w", spec.ID, err)
	}
	return nil
}

// List returns all jobs as they are at now, by their ids. Of a document that is none, which somebody else has written, the Status says so.
func (s *Store) List(ctx context.Context, now time.Time) ([]Status, error) {
	records, err := s.records(ctx, driver.D{})
	if err != nil {
		return nil, err
	}
	list := make([]Status, len(records))
	for i := range records {
		list[i] = records[i].status(now)
	}
	return list, nil
}

// Get returns one job as it is at now, or ErrNoJob.
func (s *Store) Get(ctx context.Context, id string, now time.Time) (Status, error) {
	r, err := s.record(ctx, id)
	if err != nil {
		return Status{}, err
	}
	return r.status(now), nil
}

// Order is a change of a job's orders.
type Order struct {
	Pause     bool
	Resume    bool
	Stop      bool
	Now       bool     // with Stop
	Documents *float64 // a second; nil: as it is
	Bytes     *float64
	Priority  *int
}

// Order gives an order. ErrNoJob if there is no such job.
func (s *Store) Order(ctx context.Context, id string, o Order) error {
	var set driver.D
	put := func(key string, v any) { set = append(set, driver.E{Key: "orders." + key, Value: v}) }
	update := driver.D{}
	switch {
	case o.Resume:
		put("paused", false)
		put("stopped", false)
		put("now", false)
		update = append(update, driver.E{Key: "$inc", Value: driver.D{{Key: "orders.resumed", Value: int64(1)}}})
	case o.Stop:
		put("stopped", true)
		put("now", o.Now)
	case o.Pause:
		put("paused", true)
	}
	if o.Documents != nil {
		put("documents", *o.Documents)
	}
	if o.Bytes != nil {
		put("bytes", *o.Bytes)
	}
	if o.Priority != nil {
		put("priority", *o.Priority)
	}
	if len(set) == 0 {
		return errors.New("the order says nothing")
	}
	n, err := s.update(ctx, jobsStored, driver.D{{Key: "_id", Value: id}}, append(update, driver.E{Key: "$set", Value: set}), false)
	switch {
	case err != nil:
		return fmt.Errorf("give job %s an order: %w", id, err)
	case n == 0:
		return fmt.Errorf("%s: %w", id, ErrNoJob)
	}
	return nil
}

// Remove forgets a job that nobody runs, and its history. Nobody can run one whose document is none.
func (s *Store) Remove(ctx context.Context, id string) error {
	r, err := s.stored(ctx, id)
	if err != nil {
		return err
	}
	filter := driver.D{{Key: "_id", Value: id}}
	switch {
	case r.fault != nil:
	case r.Lease.Owner != "":
		return fmt.Errorf("job %s is run by %s: stop it first", id, r.Lease.Host)
	default:
		filter = append(filter, driver.E{Key: "lease.token", Value: r.Lease.Token}, driver.E{Key: "lease.owner", Value: ""})
	}
	n, err := s.delete(ctx, jobsStored, filter)
	if err == nil && n == 0 {
		err = errors.New("somebody has begun to run it")
	}
	if err == nil {
		_, err = s.delete(ctx, historyStored, driver.D{{Key: "job", Value: id}})
	}
	if err != nil {
		return fmt.Errorf("remove job %s: %w", id, err)
	}
	return nil
}

// record reads one job without its checkpoint, which may be long.
func (s *Store) record(ctx context.Context, id string) (*record, error) {
	r, err := s.stored(ctx, id)
	if err == nil {
		err = r.fault
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// stored reads one job, whose document may be none.
func (s *Store) stored(ctx context.Context, id string) (*record, error) {
	records, err := s.records(ctx, driver.D{{Key: "_id", Value: id}})
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("%s: %w", id, ErrNoJob)
	}
	return &records[0], nil
}

// records reads jobs without their checkpoints. Documents that are none are among them, with their fault: they keep no other job from being run or seen.
func (s *Store) records(ctx context.Context, filter driver.D) ([]record, error) {
	docs, err := s.find(ctx, jobsStored, filter, driver.D{{Key: "_id", Value: 1}}, 0)
	if err != nil {
		return nil, fmt.Errorf("read the jobs: %w", err)
	}
	records := make([]record, len(docs))
	for i, doc := range docs {
		if err := driver.Unmarshal(doc, &records[i]); err != nil {
			id := driver.Raw(doc).Lookup("_id")
			text, ok := id.StringValueOK()
			if !ok {
				text = id.String()
			}
			records[i] = record{ID: text, fault: fmt.Errorf("the document of job %s can't be read, and %w: %w", text, errNonsense, err)}
		}
	}
	return records, nil
}

// find reads documents, their checkpoints left out.
func (s *Store) find(ctx context.Context, collection string, filter, sort driver.D, most int) ([]bson.Document, error) {
	command := driver.D{
		{Key: "find", Value: collection}, {Key: "filter", Value: filter}, {Key: "sort", Value: sort},
		{Key: "projection", Value: driver.D{{Key: "checkpoint", Value: 0}}}, {Key: "limit", Value: int64(most)},
	}
	var docs []bson.Document
	for {
		reply, err := s.command(ctx, command)
		if err != nil {
			return nil, err
		}
		c, err := backend.ParseCursorReply(reply)
		if err != nil {
			return nil, err
		}
		it := bson.Elements(c.Batch)
		for it.Next() {
			docs = append(docs, it.Value().Data)
		}
		if c.ID == 0 {
			return docs, nil
		}
		command = driver.D{{Key: "getMore", Value: c.ID}, {Key: "collection", Value: collection}}
	}
}

// update changes one document and returns how many matched, one that was made among them.
func (s *Store) update(ctx context.Context, collection string, filter, update driver.D, upsert bool) (int64, error) {
	return s.write(ctx, driver.D{
		{Key: "update", Value: collection},
		{Key: "updates", Value: driver.A{driver.D{{Key: "q", Value: filter}, {Key: "u", Value: update}, {Key: "upsert", Value: upsert}}}},
	})
}

func (s *Store) insert(ctx context.Context, collection string, doc any) error {
	_, err := s.write(ctx, driver.D{{Key: "insert", Value: collection}, {Key: "documents", Value: driver.A{doc}}})
	return err
}

func (s *Store) delete(ctx context.Context, collection string, filter driver.D) (int64, error) {
	return s.write(ctx, driver.D{
		{Key: "delete", Value: collection},
		{Key: "deletes", Value: driver.A{driver.D{{Key: "q", Value: filter}, {Key: "limit", Value: 0}}}},
	})
}

// write runs a write command and returns its n.
func (s *Store) write(ctx context.Context, command driver.D) (int64, error) {
	reply, err := s.command(ctx, append(command, majority))
	if err != nil {
		return 0, err
	}
	written, err := backend.ParseWriteReply(reply)
	if err != nil {
		return 0, err
	}
	return written.N, written.Err()
}

// modify changes one document, and returns it as it is then, without its checkpoint unless that is wanted; nil if none matched.
func (s *Store) modify(ctx context.Context, filter, update driver.D, checkpoint bool) (*record, error) {
	command := driver.D{{Key: "findAndModify", Value: jobsStored}, {Key: "query", Value: filter}, {Key: "update", Value: update}, {Key: "new", Value: true}}
	if !checkpoint {
		command = append(command, driver.E{Key: "fields", Value: driver.D{{Key: "checkpoint", Value: 0}}})
	}
	reply, err := s.command(ctx, append(command, majority))
	if err != nil {
		return nil, err
	}
	written, err := backend.ParseWriteReply(reply)
	if err == nil {
		err = written.Err()
	}
	if err != nil {
		return nil, err
	}
	value, _ := bson.Get(reply, "value")
	doc, ok := value.DocumentOK()
	if !ok {
		return nil, nil
	}
	r := &record{}
	if err := driver.Unmarshal(doc, r); err != nil {
		return nil, fmt.Errorf("read the job: %w", err)
	}
	return r, nil
}

// majority is the write concern of everything that is stored.
var majority = driver.E{Key: "writeConcern", Value: driver.D{{Key: "w", Value: "majority"}, {Key: "j", Value: true}}}

// command runs a command on the store's database.
func (s *Store) command(ctx context.Context, command driver.D) (bson.Document, error) {
	body, err := driver.Marshal(append(command, driver.E{Key: "$db", Value: s.database}))
	if err != nil {
		return nil, fmt.Errorf("build a command: %w", err)
	}
	reply, err := s.run.Run(ctx, &backend.Request{Body: body})
	if err != nil {
		return nil, err
	}
	return reply, backend.Check(reply)
}
