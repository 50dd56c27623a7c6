package scripted

import (
	"context"
	"strings"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// Cluster is a scripted sharded cluster with one router.
type Cluster struct {
	Router string // its host
	Shards []*Set
	Refuse map[string]bool // commands that the router answers with Unauthorized
}

// Whole returns the backend on the router.
func (c *Cluster) Whole() *Whole {
	return &Whole{run: c.run, hosts: func() []string { return []string{c.Router} }, dial: c.dial}
}

func (c *Cluster) dial(host string) backend.Backend {
	if host == c.Router {
		return c.Whole()
	}
	for _, s := range c.Shards {
		if b := s.dial(host); b != nil {
			return b
		}
	}
	return nil
}

func (c *Cluster) run(_ context.Context, req *backend.Request) (bson.Document, error) {
	name, _, _ := bson.First(req.Body)
	switch {
	case c.Refuse[name]:
		return marshal(failure(mongoerr.Unauthorized, "not authorized on admin to execute command { "+name+": 1 }")), nil
	case name == "hello" || name == "isMaster":
		return marshal(okay(driver.D{{Key: "isWritablePrimary", Value: true}, {Key: "msg", Value: "isdbgrid"}, {Key: "maxWireVersion", Value: 21}})), nil
	case name == "listShards" && c.Shards != nil:
		shards := driver.A{}
		for _, s := range c.Shards {
			shards = append(shards, driver.D{{Key: "_id", Value: s.Name}, {Key: "host", Value: s.Name + "/" + strings.Join(s.hosts(), ",")}, {Key: "state", Value: 1}})
		}
		return marshal(okay(driver.D{{Key: "shards", Value: shards}})), nil
	}
	return marshal(failure(mongoerr.CommandNotFound, "no such command: '"+name+"'")), nil
}
