package command

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/exec"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"
)

// deployments are the backends that are servers, with sessions and times of their own.
type deployments struct {
	any    bool         // there is one at least
	single bool         // there is one, and no other backend: its times are the clients'
	clocks *exec.Clocks // of all
}

func deploymentsOf(e *exec.Executor) deployments {
	var names []string
	for name := range e.Backends {
		if !e.Abilities(name).Embedded {
			names = append(names, name)
		}
	}
	return deployments{any: len(names) > 0, single: len(names) == 1 && len(e.Backends) == 1, clocks: exec.NewClocks(names)}
}

// exchanging has a handler talk to deployments through an exchange, which says what the client's session asks for, and tells the client what they say of
// time. The engine has nothing of both.
func (d *Data) exchanging(h Handler) Handler {
	return func(ctx context.Context, req *Request, reply *Reply) error {
		if !d.deployments.any {
			return h(ctx, req, reply)
		}
		x := &req.exchange
		if err := d.begin(x, req); err != nil {
			return err
		}
		err := h(exec.WithExchange(ctx, x), req, reply)
		if x.Transaction != nil && req.composed && (err != nil || req.failed) {
			d.Exec.Abort(x.Transaction)
		}
		switch {
		case err != nil:
			return x.InError(err)
		case reply.Document != nil:
			reply.Document = x.Heard(reply.Document)
		default:
			reply.Elements = x.AppendHeard(reply.Elements)
		}
		return nil
	}
}

// begin fills a command's exchange.
func (d *Data) begin(x *exec.Exchange, req *Request) error {
	cfg := d.Catalog.Snapshot().Config()
	x.Reports, x.ClusterTime, x.LSID, x.Writes = d.deployments.single, req.ClusterTime, req.LSID, req.Writes
	if x.Reports && !cfg.Waits() {
		return nil
	}
	x.Clocks = d.deployments.clocks
	if req.Session != nil {
		if times := d.table.deps.Sessions.Times(*req.Session); times != nil {
			x.Times = times
		}
	}
	if _, asks := bson.Get(req.ReadConcern, "afterClusterTime"); asks && !x.Reports {
		return mongoerr.New(mongoerr.CommandNotSupported,
			"'readConcern.afterClusterTime' is not supported with several deployments: their times are not reported, and Oxbow waits for those of the session itself")
	}
	return nil
}

// reading tells a command's exchange how its collection is read where the client does not say it.
func (d *Data) reading(req *Request, s *catalog.Snapshot, database, name string) {
	if !d.deployments.any {
		return
	}
	r := s.Config().Reading(database, name)
	switch {
	case r.Causal(d.deployments.single):
		req.exchange.Waits = exec.WaitsForSeen
	case r.OwnWrites():
		req.exchange.Waits = exec.WaitsForOwnWrites
	}
	if levelOf(req.ReadConcern) != "linearizable" { // which only the primary has
		req.preference = r.Preference
	}
}

// prefer makes the read of a collection with a layout go where the configuration says, unless the client says it.
func prefer(g *statement.Generic, req *Request) {
	if g.ReadPreference.Type == 0 && req.preference != nil && !req.InTransaction {
		g.ReadPreference = bson.Value{Type: bson.TypeDocument, Data: req.preference}
	}
}

// forwardRead is forward for a read of a plain collection.
func (d *Data) forwardRead(ctx context.Context, name string, req *Request, reply *Reply) error {
	req.exchange.Preference = req.preference
	return d.forward(ctx, name, req, reply)
}
