package badinput

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow"
)

// A configuration that is wrong is refused with line and key before anything is started: there is no data folder afterwards. The table of all
// wrong configurations is in internal/config.
func TestConfigurationRefused(t *testing.T) {
	for _, c := range []struct{ name, collections, want string }{
		{"unknown key", "collections:\n  a.b: {hsah: {field: u}}\n", "3:9: collections.a.b.hsah"},
		{"no such zone", "collections:\n  a.b: {time: {field: t, every: day, zone: Mars/Olympus}}\n", "collections.a.b.time.zone"},
		{"two layouts for one collection", "collections:\n  a.b: {hash: {field: u}}\n  a.b: {hash: {field: v}}\n", "4:3: collections.a.b: is there twice"},
		{"a hash count of 0", "collections:\n  a.b: {hash: {field: u, count: 0}}\n", "collections.a.b.hash.count"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			g, err := oxbow.Open(t.Context(), oxbow.Options{File: configure(t, dir, c.collections), Listen: "127.0.0.1:0"})
			if err == nil {
				shut(g)
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "data")); !os.IsNotExist(err) {
				t.Errorf("the data folder was made: %v", err)
			}
		})
	}
}

// A reload that would make documents unroutable is refused whole, and the layout before stays in force: for documents that are there and for new
// ones.
func TestReloadRefused(t *testing.T) {
	for _, c := range []struct{ name, from, to string }{
		{"another hash count", "d.byhash:    {hash: {field: h, count: 4}}", "d.byhash:    {hash: {field: h, count: 8}}"},
		{"another hash field", "d.byhash:    {hash: {field: h, count: 4}}", "d.byhash:    {hash: {field: x, count: 4}}"},
		{"another unit", "d.bydate:    {time: {field: at, every: day}}", "d.bydate:    {time: {field: at, unit: ms, every: day}}"},
		{"no layout", "  d.bydate:    {time: {field: at, every: day}}\n", ""},
		{"an unknown key", "count: 4", "cuont: 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			g := open(t, configure(t, dir, collections))
			db := connect(t, g).Database("d")
			for _, name := range []string{"byhash", "bydate"} {
				stored(t, db.Collection(name), bson.M{"_id": 1, "h": 5, "at": at(1)}, bson.M{"_id": 2, "h": 6, "at": at(2)})
			}
			changed := strings.Replace(collections, c.from, c.to, 1)
			if changed == collections {
				t.Fatal("the test changes nothing")
			}
			configure(t, dir, changed)
			if err := g.Reload(t.Context()); err == nil {
				t.Fatal("the reload was taken")
			}
			for _, name := range []string{"byhash", "bydate"} {
				stored(t, db.Collection(name), bson.M{"_id": 3, "h": 5, "at": at(1)})
				if got := ids(t, db.Collection(name)); !slices.Equal(got, []int32{1, 2, 3}) {
					t.Errorf("%s holds %v", name, got)
				}
			}
			var one bson.M
			if err := db.Collection("byhash").FindOne(t.Context(), bson.M{"h": 6}).Decode(&one); err != nil || one["_id"] != int32(2) {
				t.Errorf("a find by the hash field gives %v, %v", one, err)
			}
		})
	}
}
