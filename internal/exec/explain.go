package exec

import (
	"context"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/plan"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Explain has every target explain its part, and returns the replies in the order of the targets. Where they name the partition they have the
// collection's name.
func (e *Executor) Explain(ctx context.Context, p *plan.Explain, verbosity string) ([]bson.Document, error) {
	parts := make([]bson.Document, len(p.Routed.Targets))
	targets := p.Routed.Targets
	return parts, e.spread(ctx, collectionOf(targets), len(targets), func(ctx context.Context, i int) (err error) {
		parts[i], err = e.explainOn(ctx, targets[i], p.Command, verbosity)
		return err
	})
}

func (e *Executor) explainOn(ctx context.Context, t plan.Target, c plan.Command, verbosity string) (bson.Document, error) {
	at, body := bsoncore.AppendDocumentStart(nil)
	body = bsoncore.AppendDocumentElement(body, "explain", c.For(t.Namespace))
	body = bsoncore.AppendStringElement(body, "verbosity", verbosity)
	body = bsoncore.AppendStringElement(body, "$db", t.Namespace.Database)
	body, _ = bsoncore.AppendDocumentEnd(body, at)
	reply, err := e.Run(ctx, t.Backend, &backend.Request{Body: body})
	if err != nil {
		return nil, err
	}
	if err := backend.Check(reply); err != nil {
		return nil, e.refused(t, err)
	}
	if t.Logical != "" {
		reply = backend.RenameFields(reply, t.Namespace, t.Logical)
	}
	return reply, nil
}
