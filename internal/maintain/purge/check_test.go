package purge_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oxbow/internal/archive"
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/maintain"
	"oxbow/internal/maintain/purge"
)

// permanent reports whether an error is one that trying again does not mend.
func permanent(err error) bool {
	var p interface{ Permanent() bool }
	return errors.As(err, &p) && p.Permanent()
}

// specOf is a job with some parameters on a namespace.
func specOf(t *testing.T, namespace string, p purge.Parameters) maintain.Spec {
	t.Helper()
	doc, err := p.Document()
	if err != nil {
		t.Fatal(err)
	}
	return maintain.Spec{ID: "job", Kind: purge.KindName, Namespace: namespace, Parameters: doc}
}

// TestCheck: what can't be is refused before anything is asked of a deployment, by its name.
func TestCheck(t *testing.T) {
	day := int64(24 * time.Hour / time.Millisecond)
	ids := purge.Parameters{Strategy: purge.IDs, Field: "time", Age: day}
	if err := purge.Check(specOf(t, "fla.log", ids), "jobs"); err != nil {
		t.Fatal(err)
	}
	if err := purge.Check(specOf(t, "fla.log", purge.Parameters{Strategy: purge.TTL}), "jobs"); err != nil {
		t.Errorf("ttl by itself: %v", err)
	}
	for want, change := range map[string]func(p *purge.Parameters){
		"workers are 1 to 1000, not -3":      func(p *purge.Parameters) { p.Strategy, p.Workers = purge.Ranges, -3 },
		"workers are 1 to 1000, not 1000000": func(p *purge.Parameters) { p.Strategy, p.Workers = purge.Ranges, 1_000_000 },
		"a batch has 1 to 10000":             func(p *purge.Parameters) { p.Batch = -1 },
		"an export holds 1 to":               func(p *purge.Parameters) { p.Export = math.MaxInt32 },
		"a slice is a time above 0":          func(p *purge.Parameters) { p.Strategy, p.Slice = purge.Slices, -5 },
		"not NaN":                            func(p *purge.Parameters) { p.MaxRatio = math.NaN() },
		"not +Inf":                           func(p *purge.Parameters) { p.MaxRatio = math.Inf(1) },
		"not -1":                             func(p *purge.Parameters) { p.MaxRatio = -1 },
		"no unit \"fortnight\"":              func(p *purge.Parameters) { p.Unit = "fortnight" },
		"\"a..b\" is no field":               func(p *purge.Parameters) { p.Field = "a..b" },
		"an age can't be negative":           func(p *purge.Parameters) { p.Strategy, p.Age = purge.Drop, -day },
		"not both":                           func(p *purge.Parameters) { p.Strategy, p.Before = purge.Drop, now },
		"nothing lies before":                func(p *purge.Parameters) { p.Age, p.Before, p.From = 0, now, now },
		"can't be archived before":           func(p *purge.Parameters) { *p = purge.Parameters{Strategy: purge.TTL, Archive: "folder"} },
		"ttl has no use for a time before":   func(p *purge.Parameters) { *p = purge.Parameters{Strategy: purge.TTL, Before: now} },
		"ttl has no use for a time from":     func(p *purge.Parameters) { *p = purge.Parameters{Strategy: purge.TTL, From: now} },
		"ttl has no use for a filter": func(p *purge.Parameters) {
			*p = purge.Parameters{Strategy: purge.TTL, Where: []byte(bsontest.Doc(t, `{"a": 1}`))}
		},
		"ttl has no use for batch":           func(p *purge.Parameters) { *p = purge.Parameters{Strategy: purge.TTL, Batch: 10} },
		"ttl has no use for the greatest":    func(p *purge.Parameters) { *p = purge.Parameters{Strategy: purge.TTL, MaxRatio: 3} },
		"is no template":                     func(p *purge.Parameters) { p.Strategy, p.Parts = purge.Drop, "fla.log" },
		"database admin is the servers' own": func(p *purge.Parameters) { p.Strategy, p.Parts = purge.Drop, "admin.log{yymmdd}" },
		"read the filter":                    func(p *purge.Parameters) { p.Where = []byte(bsontest.Doc(t, `{"$foo": 1}`)) },
	} {
		p := ids
		change(&p)
		if err := purge.Check(specOf(t, "fla.log", p), "jobs"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error with %q", err, want)
		}
	}
	for _, namespace := range []string{"admin.log", "config.chunks", "local.oplog.rs", "jobs.jobs", "jobs.job_history", "fla.system.views"} {
		if err := purge.Check(specOf(t, namespace, ids), "jobs"); err == nil || !strings.Contains(err.Error(), "nothing in it is purged") {
			t.Errorf("%s: %v", namespace, err)
		}
	}
}

// TestArchiveNotOpenYet: a folder that another process has open, or whose disk is full, may be free later, so the job tries again; one that is a file is not.
func TestArchiveNotOpenYet(t *testing.T) {
	kind := purge.Kind(purge.Surroundings{
		Targets: func(ns backend.Namespace) func(context.Context) ([]purge.Target, error) { return purge.At(nil, ns) },
		OpenArchive: func(dir string, rotate int64) (purge.ClosingArchive, error) {
			return archive.Open(archive.Options{Dir: dir, Rotate: rotate})
		},
	})
	dir := t.TempDir()
	first, err := archive.Open(archive.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	spec := specOf(t, "fla.log", purge.Parameters{Strategy: purge.IDs, Field: "time", Age: 1, Archive: dir})
	if _, err := kind(spec); err == nil || permanent(err) {
		t.Errorf("an archive that is open elsewhere: %v; want an error that may be over", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	spec = specOf(t, "fla.log", purge.Parameters{Strategy: purge.IDs, Field: "time", Age: 1, Archive: file})
	if _, err := kind(spec); !permanent(err) {
		t.Errorf("an archive that is a file: %v; want an error that stays", err)
	}
}

// TestIndexDropped: a job whose index is dropped under it goes on by another one that leads there, and ends where there is none.
func TestIndexDropped(t *testing.T) {
	for _, strategy := range []purge.Strategy{purge.Slices, purge.Ranges, purge.IDs} {
		for _, other := range []bool{true, false} {
			s := openStore(t)
			s.index(t, `{"time": 1}`)
			docs := lines(600, 15*time.Second)
			s.insert(t, docs...)
			o := s.options(strategy, hour)
			o.Workers, o.Batch, o.Export = 1, 10, 50
			at := now
			o.Clock = func() time.Time { at = at.Add(400 * time.Millisecond); return at } // a step has little time
			o.Predicate.Age, o.Predicate.Before = 0, now.Add(-time.Hour)
			job, err := purge.New(o)
			if err != nil {
				t.Fatal(err)
			}
			var checkpoint bson.Document
			gone, failures := int64(0), 0
			for done := false; !done; {
				if gone > 0 && failures == 0 && len(s.all(t)) < 600 {
					if other {
						s.command(t, `{"createIndexes": "log", "indexes": [{"key": {"time": 1, "dev": 1}, "name": "other"}]}`)
					}
					s.command(t, `{"dropIndexes": "log", "index": "i"}`)
					failures++
				}
				out, err := job.Step(t.Context(), checkpoint, free{})
				if err != nil {
					if failures++; permanent(err) || failures > 5 {
						break
					}
					continue
				}
				checkpoint, done = out.Checkpoint, out.Done
				gone += out.Documents
			}
			left := s.all(t)
			switch {
			case other && gone != 360:
				t.Errorf("%s by another index: %d documents went, want 360", strategy, gone)
			case other:
				wantSame(t, left, docs[360:])
			case failures > 3:
				t.Errorf("%s without an index did not end", strategy)
			case len(left) == 240 && strategy != purge.IDs: // ids has them all in memory, perhaps
				t.Errorf("%s without an index took all", strategy)
			}
		}
	}
}

// TestDropWithoutPartitions: what will never have partitions is not asked for them for ever.
func TestDropWithoutPartitions(t *testing.T) {
	s := openStore(t)
	o := s.options(purge.Drop, purge.Predicate{Field: "time", Age: time.Hour})
	o.Parts = purge.ServerParts(s, logs)
	if _, err := finish(t.Context(), o); !permanent(err) {
		t.Errorf("%v; want an error that stays", err)
	}
}

// TestForeignCheckpoint: a checkpoint that somebody else has written ends the job, and takes nothing away that has to stay.
func TestForeignCheckpoint(t *testing.T) {
	s := openStore(t)
	s.index(t, `{"time": 1}`)
	docs := lines(600, 15*time.Second)
	s.insert(t, docs...)
	o := s.options(purge.Ranges, hour)
	for _, text := range []string{
		`{"now": {"$numberLong": "1772366400000"}, "path": "time", "targets": [], "cells": [{"t": 99}], "total": 5}`,
		`{"now": {"$numberLong": "1772366400000"}, "path": "time", "targets": [], "cells": [{"t": -1}]}`,
		`{"now": {"$numberLong": "1772366400000"}, "path": "time", "targets": [{"name": "fla.log"}], "cells": [null]}`,
		`{"filter": {}, "path": "time", "targets": [{"name": "fla.log", "index": "i"}], "cells": [{"t": 0}]}`,
		`{"now": {"$numberLong": "1772366400000"}, "path": "time", "targets": [{"name": "fla.log", "index": "i"}], "cells": [{"t": 0}]}`,
		`{"now": {"$numberLong": "1772366400000"}, "path": "time", "targets": [{"name": "fla.log", "index": "i"}], "cells": []}`,
		`{"cells": "none"}`,
	} {
		job, err := purge.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := job.Step(t.Context(), bsontest.Doc(t, text), free{}); err == nil || !strings.Contains(err.Error(), "read the checkpoint") {
			t.Errorf("%s: %v", text, err)
		}
	}
	wantSame(t, s.all(t), docs)
	// A range that reaches further than what was asked for takes no more than that.
	job, err := purge.New(o)
	if err != nil {
		t.Fatal(err)
	}
	wide := bsontest.Doc(t, `{"now": {"$numberLong": "1772366400000"}, "path": "time", "filter": {}, "total": -1, "targets": [{"name": "fla.log", "index": "i", "low": 1, "high": 2}],
		"cells": [{"t": 0, "lo": {"$date": "1990-01-01T00:00:00Z"}, "hi": {"$date": "2090-01-01T00:00:00Z"}}]}`)
	for range 100 {
		out, err := job.Step(t.Context(), wide, free{})
		if err != nil {
			t.Fatal(err)
		}
		if wide = out.Checkpoint; out.Done {
			break
		}
	}
	wantSame(t, s.all(t), docs[360:])
}
