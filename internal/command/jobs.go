package command

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Jobs is what the operator's commands need of the jobs that a gateway runs.
type Jobs interface {
	// List returns all jobs, as documents.
	List(ctx context.Context) ([]bson.Document, error)
	// History returns the latest entries of a job's history, oldest first.
	History(ctx context.Context, id string) ([]bson.Document, error)
	// Order gives a job an order: the fields of orderJob.
	Order(ctx context.Context, id string, order bson.Document) error
}

// orders are the fields of orderJob.
var orders = []string{"pause", "resume", "stop", "now", "documents", "bytes", "priority", "remove"}

// RegisterJobs puts the operator's commands on jobs into the table. They are Oxbow's own; the command line speaks through them.
func (t *Table) RegisterJobs(jobs Jobs) {
	t.Register("listJobs", Entry{Handler: func(ctx context.Context, _ *Request, reply *Reply) error {
		docs, err := jobs.List(ctx)
		reply.Elements = appendDocuments(reply.Elements, "jobs", docs)
		return err
	}, AdminOnly: true, Fields: none, Help: "the jobs of the gateway, and how they stand"})
	t.Register("jobHistory", Entry{Handler: func(ctx context.Context, req *Request, reply *Reply) error {
		id, err := jobNamed(req)
		if err != nil {
			return err
		}
		docs, err := jobs.History(ctx, id)
		reply.Elements = appendDocuments(reply.Elements, "entries", docs)
		return err
	}, AdminOnly: true, Fields: none, Help: "what a job did lately, and why it ended"})
	t.Register("orderJob", Entry{Handler: func(ctx context.Context, req *Request, _ *Reply) error {
		id, err := jobNamed(req)
		if err != nil {
			return err
		}
		return jobs.Order(ctx, id, ordersOf(req.Body))
	}, AdminOnly: true, Writes: true, Fields: orders, Help: "pauses, resumes and stops a job, and changes its limits and priority"})
}

// jobNamed is the job that a command's own argument names.
func jobNamed(req *Request) (string, error) {
	id, ok := req.Argument.StringValueOK()
	if !ok {
		return "", wrongType(req.Name+"."+req.Name, req.Argument.Type, "string")
	}
	if id == "" {
		return "", mongoerr.New(mongoerr.BadValue, "a job has a name")
	}
	return id, nil
}

// ordersOf takes the orders out of a command's body.
func ordersOf(body bson.Document) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	for _, name := range orders {
		if v, ok := bson.Get(body, name); ok {
			dst = bsoncore.AppendValueElement(dst, name, v)
		}
	}
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}
