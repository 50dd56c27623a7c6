package command

import (
	"context"
	"slices"

	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
)

// MongoDB's commands outside the table that no partition and no catalog can be reached by, so that any server may have them (docs/commands.md).
var (
	// aboutServer name no collection.
	aboutServer = []string{"atlasVersion", "balancerStatus", "connPoolStats", "getFreeMonitoringStatus", "getShardMap", "listShards",
		"replSetGetConfig", "replSetGetStatus", "shardConnPoolStats"}
	// aboutCollection name one collection, of the command's database, and that in their first field.
	aboutCollection = []string{"collMod", "compact", "convertToCapped", "planCacheClear", "planCacheClearFilters", "planCacheListFilters",
		"planCacheSetFilter", "reIndex", "setIndexCommitQuorum"}
	// viewFields of collMod name further collections.
	viewFields = []string{"viewOn", "pipeline"}
)

// unknown answers commands that are not in the table. What an unknown command means by its strings, its UUIDs and its database only its server knows; so none goes to a
// backend on which partitions or the catalog lie or may come to lie, but for those that are known to reach neither. To any other backend they go as they came.
func (d *Data) unknown(ctx context.Context, req *Request, reply *Reply) error {
	if err := d.open(req.Database); err != nil {
		return err
	}
	s := d.Catalog.Snapshot()
	name := s.BackendFor(req.Database)
	switch {
	case d.Exec.Abilities(name).Embedded:
		return mongoerr.New(mongoerr.CommandNotFound, "no such command: '%s'", req.Name)
	case slices.Contains(aboutServer, req.Name) || !holdsOwn(s, name):
		return d.forward(ctx, name, req, reply)
	case slices.Contains(aboutCollection, req.Name):
		if err := d.checkOnlyCollection(s, name, req); err != nil {
			return err
		}
		return d.forward(ctx, name, req, reply)
	}
	return mongoerr.New(mongoerr.CommandNotSupported,
		"'%s' is not supported: Oxbow does not know what it would reach on the backend %s, which holds partitions or the catalog", req.Name, name)
}

// reachesOwn reports whether a command that a backend runs by itself could reach partitions or the catalog: a server with any of them. The engine of this process runs
// commands on what they name, and no others.
func (d *Data) reachesOwn(s *catalog.Snapshot, backend string) bool {
	return !d.Exec.Abilities(backend).Embedded && holdsOwn(s, backend)
}

// holdsOwn reports whether partitions or the catalog lie on a backend, or would once they are made.
func holdsOwn(s *catalog.Snapshot, backend string) bool {
	cfg := s.Config()
	if cfg.Default == backend {
		return true
	}
	for i := range cfg.Collections {
		if slices.Contains(cfg.Collections[i].Over, backend) {
			return true
		}
	}
	for _, c := range s.Collections("") {
		for i := range c.All {
			if c.All[i].Backend == backend {
				return true
			}
		}
	}
	return false
}

// checkOnlyCollection refuses a command on one collection when that is a partition or has a layout, or when it names others beside it.
func (d *Data) checkOnlyCollection(s *catalog.Snapshot, backend string, req *Request) error {
	name, ok := req.Argument.StringValueOK()
	if !ok {
		return mongoerr.New(mongoerr.InvalidNamespace, "collection name has invalid type %s", bson.TypeName(req.Argument.Type))
	}
	if s.Collection(req.Database+"."+name) != nil {
		return mongoerr.New(mongoerr.CommandNotSupported, "'%s' is not supported on %s.%s, which has a layout", req.Name, req.Database, name)
	}
	for _, field := range viewFields {
		if _, has := bson.Get(req.Body, field); has {
			return mongoerr.New(mongoerr.CommandNotSupported, "'%s' with %s is not supported: views are not built", req.Name, field)
		}
	}
	return view{s, plan.Source{Database: req.Database, Name: name, Backend: backend}}.writable()
}
