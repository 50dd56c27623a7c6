package survey

import (
	"testing"

	"oxbow/internal/bson/bsontest"
)

// TestStore: a server stores what its own shard has of a collection, not all of it.
func TestStore(t *testing.T) {
	for name, test := range map[string]struct {
		stats        string
		first, other int64
	}{
		"a replica set":         {`{"storageSize": 100, "totalIndexSize": 20}`, 120, 120},
		"by shard":              {`{"storageSize": 100, "totalIndexSize": 20, "shards": {"rs0": {"storageSize": 70, "totalIndexSize": 10}, "rs1": {"storageSize": 30, "totalIndexSize": 10}}}`, 80, 40},
		"on one shard":          {`{"storageSize": 100, "totalIndexSize": 20, "shards": {"rs1": {"storageSize": 100, "totalIndexSize": 20}}}`, 0, 120},
		"shards of other names": {`{"storageSize": 100, "totalIndexSize": 20, "shards": {"a": {"storageSize": 70, "totalIndexSize": 10}, "b": {"storageSize": 30, "totalIndexSize": 10}}}`, 60, 60},
		"nothing reported":      {`{"ok": 1}`, 0, 0},
	} {
		s := Survey{Servers: []Server{{Set: "rs0"}, {Set: "rs1"}}}
		s.store(bsontest.Doc(t, test.stats))
		if s.Servers[0].DataBytes != test.first || s.Servers[1].DataBytes != test.other {
			t.Errorf("%s: %d and %d, want %d and %d", name, s.Servers[0].DataBytes, s.Servers[1].DataBytes, test.first, test.other)
		}
	}
}
