package purge_test

import (
	"testing"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/catalog"
	"oxbow/internal/config"
	"oxbow/internal/maintain/purge"
	"oxbow/internal/route"
)

// openCatalog opens a catalog of fla.log, split by hour and hash, on a store, and puts documents where they belong.
func openCatalog(t *testing.T, s store, docs []bson.Document) (*catalog.Catalog, map[string]backend.Backend) {
	t.Helper()
	cfg, err := config.Parse("configuration", []byte("backends:\n  local: {embedded: data}\n"+layouts["both"]))
	if err != nil {
		t.Fatal(err)
	}
	backends := map[string]backend.Backend{"local": s}
	c, err := catalog.Open(t.Context(), catalog.Options{Config: cfg, Backends: backends, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.CreateIndexes(t.Context(), logs.String(), []bson.Document{bsontest.Doc(t, `{"key": {"time": 1}, "name": "time_1"}`)}); err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		table := &c.Snapshot().Collection(logs.String()).Table
		place, err := table.Place(d, now.UnixMilli())
		if err != nil {
			t.Fatal(err)
		}
		made, err := c.Ensure(t.Context(), logs.String(), []route.Place{place})
		if err != nil {
			t.Fatal(err)
		}
		table = &made.Collection(logs.String()).Table
		if place, err = table.Place(d, now.UnixMilli()); err != nil {
			t.Fatal(err)
		}
		p := table.Partitions[place.Partition]
		store{s, backend.Namespace{Database: p.Database, Collection: p.Collection}}.insert(t, d)
	}
	return c, backends
}

// inPartitions are the documents of all partitions, by _id.
func inPartitions(t *testing.T, s store, c *catalog.Catalog) []bson.Document {
	t.Helper()
	var all []bson.Document
	for _, p := range c.Snapshot().Collection(logs.String()).Table.Partitions {
		all = append(all, store{s, backend.Namespace{Database: p.Database, Collection: p.Collection}}.all(t)...)
	}
	return inOrder(all)
}

// TestWithinGateway: every strategy on the partitions of a collection, as a gateway's own job does it.
func TestWithinGateway(t *testing.T) {
	for _, strategy := range byTime {
		for _, withArchive := range []bool{false, true} {
			if withArchive && strategy == purge.Nightly {
				continue // it is Ranges
			}
			s := openStore(t)
			docs := lines(120, 90*time.Second) // three hours
			c, backends := openCatalog(t, s, docs)
			o := s.options(strategy, hour)
			o.Targets = purge.CatalogTargets(c, backends, logs.String())
			o.Batch = 5
			archive := &kept{}
			if withArchive {
				o.Archive, o.ArchiveAs = archive, logs
			}
			did, err := finish(t.Context(), o)
			if err != nil {
				t.Fatalf("%s: %v", strategy, err)
			}
			wantSame(t, inPartitions(t, s, c), docs[80:])
			if withArchive {
				wantSame(t, inOrder(archive.docs), docs[:80])
			}
			if did.Documents != 80 {
				t.Errorf("%s did %d documents, want 80", strategy, did.Documents)
			}
		}
	}
}

// TestDropWithinGateway: the catalog's partitions go whole, archived under the collection's name.
func TestDropWithinGateway(t *testing.T) {
	s := openStore(t)
	docs := lines(120, 90*time.Second)
	c, backends := openCatalog(t, s, docs)
	o := s.options(purge.Drop, hour)
	archive := &kept{}
	o.Parts, o.Archive, o.ArchiveAs = purge.CatalogParts{Catalog: c, Backends: backends, Name: logs.String()}, archive, logs
	did, err := finish(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, inPartitions(t, s, c), docs[80:])
	wantSame(t, inOrder(archive.docs), docs[:80])
	if did.Documents != 80 {
		t.Errorf("did %d documents, want 80", did.Documents)
	}
}

// TestDropWithinGatewayByAnotherField: partitions that are split by one field are not dropped by the time in another.
func TestDropWithinGatewayByAnotherField(t *testing.T) {
	s := openStore(t)
	docs := lines(120, 90*time.Second)
	c, backends := openCatalog(t, s, docs)
	o := s.options(purge.Drop, purge.Predicate{Field: "created", Age: time.Hour})
	o.Parts = purge.CatalogParts{Catalog: c, Backends: backends, Name: logs.String()}
	_, err := finish(t.Context(), o)
	wantRefusal(t, err, "is split by time and not by created")
	wantSame(t, inPartitions(t, s, c), docs)
}
