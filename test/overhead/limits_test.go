package overhead

import (
	"fmt"
	"sync"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
)

// pool is a gateway whose connections to the backend, with the two that watch it, are a hundred at most.
const pool = `
catalog: gateway
backends: {second: {uri: "mongodb://%s/?maxPoolSize=98&waitQueueTimeoutMS=60000"}}
`

// behindPool is a backend and such a gateway in front of it, with a document in fla.plain.
func behindPool(t *testing.T) *deployment {
	d := &deployment{backend: play(t, "oxbow", fmt.Sprintf("backends: {local: {embedded: %q}}", t.TempDir()))}
	d.gateway = play(t, "oxbow", fmt.Sprintf(pool, d.backend.address))
	c := dial(t, d.gateway.address)
	c.call = insertOf(batch, false)("plain", "plain", 0)
	for range stored / batch {
		if err := c.once(); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// TestConnections: five thousand clients, who all ask at the same time, need a hundred connections to the backend at most, and all get their answers.
func TestConnections(t *testing.T) {
	const clients, rounds = 5000, 3
	d := behindPool(t)
	all := make([]*client, clients)
	for i := range all {
		owners++
		all[i] = dial(t, d.gateway.address)
		all[i].call = find("plain", "plain", owners)
	}
	watch := dial(t, d.backend.address)
	most := int64(0)
	for range rounds {
		var wait sync.WaitGroup
		for _, c := range all {
			wait.Go(func() {
				if err := c.once(); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		most = max(most, connections(t, watch)-1)
	}
	if most > 100 || most < 10 {
		t.Errorf("%d clients took %d connections to the backend", clients, most)
	}
	t.Logf("%d clients, %d connections to the backend", clients, most)
}

// connections is how many a server has open.
func connections(t *testing.T, c *client) int64 {
	m, _, _ := message(marshal(driver.D{{Key: "serverStatus", Value: 1}, {Key: "$db", Value: "admin"}}), "", nil)
	reply, err := c.roundTrip(m)
	if err != nil {
		t.Fatal(err)
	}
	section, _ := bson.Get(reply, "connections")
	v, _ := bson.Get(section.Data, "current")
	n, ok := v.AsInt64OK()
	if !ok {
		t.Fatalf("the server's status is %v", reply)
	}
	return n
}

// mostAllocations is how many a command that is forwarded as it came may cost the gateway.
const mostAllocations = 20

// TestAllocations: forwarding a command costs few allocations, whatever the command.
func TestAllocations(t *testing.T) {
	d := behindPool(t)
	const calls = 3000
	for name, op := range map[string]operation{
		"find": find, "updateOne": updateOne, "insertOne": insertOf(1, true), "insert of 1,000": insertOf(batch, false),
	} {
		owners++
		c := dial(t, d.gateway.address)
		c.call = op("plain", "plain", owners)
		n := calls / c.call.documents * min(c.call.documents, 20)
		for range n / 10 { // until buffers have grown
			if err := c.once(); err != nil {
				t.Fatal(err)
			}
		}
		before := d.gateway.used(t)
		for range n {
			if err := c.once(); err != nil {
				t.Fatal(err)
			}
		}
		each := float64(d.gateway.used(t).since(before).allocations) / float64(n)
		if each > mostAllocations {
			t.Errorf("%s costs %.1f allocations, more than %d", name, each, mostAllocations)
		}
		t.Logf("%s: %.1f allocations", name, each)
	}
}
