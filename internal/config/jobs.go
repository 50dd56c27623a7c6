package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/schedule"
)

// Job is one job of the configuration.
type Job struct {
	Name       string
	Kind       string        // of JobKinds
	Namespace  string        // "db.collection"; with kill also "db.*", or "" for all
	Parameters bson.Document // of the kind, as its room reads them
	Windows    schedule.Windows
	MaxRun     time.Duration // 0: no limit
	Every      time.Duration // from the begin of a pass to that of the next; 0: it has one pass
	EachWindow bool          // a pass begins in every window
	StopFile   string
	Priority   int
	Retries    int     // failures in a row that end it; 0: it is tried for ever
	Documents  float64 // a second; 0: no limit
	Bytes      float64

	file         string
	line, column int // of its name
}

// JobKinds are the kinds of jobs.
var JobKinds = []string{"purge", "kill"}

// Problem is an error of a job's that only its room could find, with the place of the job.
func (j *Job) Problem(err error) error {
	return &Error{File: j.file, Line: j.line, Column: j.column, Key: "jobs." + j.Name, Message: withoutLogin(err.Error())}
}

// jobName is what a job may be called: its name is an _id, a label and part of a comment.
var jobName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

const (
	mostPriority = 100
	mostRetries  = 1_000_000
	mostRate     = 1_000_000_000
	mostMaxRatio = 1_000_000
)

// readJobs reads the key jobs:
//
//	jobs:
//	  old-logs:
//	    kind: purge
//	    on: fla.logGset
//	    with: {strategy: ranges, field: time, unit: s, age: 30d}
//	    windows: ["22:00-08:00 Asia/Shanghai"]
//	    every: window
//	    limits: {documents: 5000, bytes: 10MiB}
func (cfg *Config) readJobs(m *mapping) {
	list := openMapping(m.report, m.take("jobs"), "jobs")
	for _, e := range list.entries {
		cfg.Jobs = append(cfg.Jobs, cfg.readJob(m.report, e, list.child(e.key)))
	}
}

func (cfg *Config) readJob(r *report, e entry, path string) Job {
	j := Job{Name: e.key, file: r.file}
	if p := e.at.GetToken().Position; p != nil {
		j.line, j.column = p.Line, p.Column
	}
	if !jobName.MatchString(e.key) {
		r.add(e.at, path, "a job's name has letters, digits, '.', '_' and '-', 64 at most")
	}
	m := openMapping(r, e.value, path)
	if !m.has("kind") {
		r.add(e.at, path, "needs kind: one of %v", JobKinds)
	}
	j.Kind = JobKinds[m.choice("kind", 0, JobKinds...)]
	j.Namespace, _ = m.text("on")
	cfg.checkJobNamespace(&j, m)
	with := openMapping(r, m.take("with"), m.child("with"))
	if j.Kind == "purge" {
		j.Parameters = with.purgeParameters()
	} else {
		j.Parameters = with.killParameters()
	}
	j.readTimes(m)
	j.StopFile, _ = m.text("stopFile")
	j.Priority = m.whole("priority", 1, mostPriority, 1)
	j.Retries = m.whole("retries", 0, mostRetries, 0)
	limits := openMapping(r, m.take("limits"), m.child("limits"))
	j.Documents = float64(limits.whole("documents", 1, mostRate, 0))
	j.Bytes = float64(limits.size("bytes"))
	limits.close("documents", "bytes")
	m.close("kind", "on", "with", "windows", "every", "maxRun", "stopFile", "priority", "retries", "limits")
	return j
}

// checkJobNamespace refuses what a job can't work on. A policy may concern whole databases.
func (cfg *Config) checkJobNamespace(j *Job, m *mapping) {
	at := m.valueOf("on")
	if j.Kind == "kill" {
		return
	}
	if at == nil {
		if !m.has("on") {
			m.add(m.at, m.path, "needs on: the collection that it works on")
		}
		return
	}
	database, _, err := splitNamespace(j.Namespace)
	if err == nil && database == cfg.CatalogDatabase() {
		err = fmt.Errorf("database %q has the catalog", database)
	}
	if err != nil {
		m.add(at, m.child("on"), "%v", err)
	}
}

func (j *Job) readTimes(m *mapping) {
	texts, nodes := m.texts("windows")
	for i, text := range texts {
		w, err := schedule.Parse(text)
		if err != nil {
			m.add(nodes[i], m.child("windows"), "%v", err)
			continue
		}
		j.Windows = append(j.Windows, w)
	}
	j.MaxRun, _ = m.duration("maxRun")
	text, at := m.text("every")
	switch {
	case at == nil:
	case text == "once":
	case text == "window":
		j.EachWindow = true
		if len(j.Windows) == 0 {
			m.add(at, m.child("every"), "window needs windows")
		}
	default:
		d, err := ParseDuration(text)
		if err != nil || d < time.Second {
			m.add(at, m.child("every"), "must be once, window, or a time of a second or more such as 5m, not %q", text)
		}
		j.Every = d
	}
}

// parameters collects what a kind's room is given.
type parameters struct {
	*mapping
	doc driver.D
}

func (p *parameters) put(key string, value any) {
	p.doc = append(p.doc, driver.E{Key: key, Value: value})
}

func (p *parameters) texts(keys ...string) {
	for _, key := range keys {
		if text, at := p.text(key); at != nil {
			p.put(key, text)
		}
	}
}

func (p *parameters) numbers(most int, keys ...string) {
	for _, key := range keys {
		if p.has(key) {
			p.put(key, int64(p.whole(key, 1, most, 1)))
		}
	}
}

func (p *parameters) switches(keys ...string) {
	for _, key := range keys {
		if p.has(key) {
			p.put(key, p.choice(key, 0, "false", "true") == 1)
		}
	}
}

// times are durations, in milliseconds.
func (p *parameters) times(keys ...string) {
	for _, key := range keys {
		d, at := p.duration(key)
		switch {
		case at == nil:
		case d < time.Millisecond:
			p.add(at, p.child(key), "must be a millisecond or more, not %s", d)
		default:
			p.put(key, d.Milliseconds())
		}
	}
}

func (p *parameters) instants(keys ...string) {
	for _, key := range keys {
		text, at := p.text(key)
		if at == nil {
			continue
		}
		t, err := time.Parse(time.DateOnly, text)
		if err != nil {
			t, err = time.Parse(time.RFC3339, text)
		}
		if err != nil {
			p.add(at, p.child(key), "must be a time such as 2026-01-31 or 2026-01-31T00:00:00Z, not %q", text)
			continue
		}
		p.put(key, t)
	}
}

// filter is Extended JSON in a text.
func (p *parameters) filter(key string) {
	text, at := p.text(key)
	if at == nil {
		return
	}
	filter, err := ParseFilter(text)
	if err != nil {
		p.add(at, p.child(key), "must be a filter in JSON, such as '{\"flag\": 1}': %v", err)
		return
	}
	p.put(key, filter)
}

// ParseFilter reads a filter in Extended JSON, relaxed or canonical (https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/). The error says what it is
// instead of one document: what follows one would be left out, and null would be no filter, so that more matched than was asked for.
func ParseFilter(text string) (driver.Raw, error) {
	if !json.Valid([]byte(text)) || !strings.HasPrefix(strings.TrimSpace(text), "{") {
		if most := 80; len(text) > most {
			text = strings.ToValidUTF8(text[:most], "") + "…"
		}
		return nil, fmt.Errorf("%q is not one JSON document", text)
	}
	var filter driver.Raw
	if err := driver.UnmarshalExtJSON([]byte(text), false, &filter); err != nil {
		return nil, err
	}
	if bson.Validate(filter, mostFilterDepth) != nil {
		return nil, fmt.Errorf("the filter is nested deeper than %d levels", mostFilterDepth)
	}
	return filter, nil
}

// mostFilterDepth leaves room for what stands around a filter in commands and in a job's document: MongoDB takes 100 levels
// (https://www.mongodb.com/docs/manual/reference/limits/#mongodb-limit-Nested-Depth-for-BSON-Documents).
const mostFilterDepth = 80

func (p *parameters) document(at ast.Node) bson.Document {
	doc, err := driver.Marshal(append(driver.D{}, p.doc...)) // a nil one is no document
	if err != nil {
		p.add(at, p.path, "%v", err)
	}
	return doc
}

var purgeKeys = []string{"strategy", "field", "unit", "before", "age", "from", "where", "workers", "batch", "slice", "follow", "unpaced", "export", "maxRatio",
	"archive", "rotate", "parts", "zone"}

// purgeParameters are those of purge.Parameters.
func (m *mapping) purgeParameters() bson.Document {
	p := &parameters{mapping: m}
	p.texts("strategy", "field", "unit", "archive", "parts", "zone")
	p.instants("before", "from")
	p.times("age", "slice")
	p.filter("where")
	p.numbers(mostMaxRatio, "workers", "batch", "export", "maxRatio")
	p.switches("follow", "unpaced")
	if bytes := m.size("rotate"); bytes > 0 {
		p.put("rotate", bytes)
	}
	m.close(purgeKeys...)
	return p.document(m.at)
}

// killParameters are those of kill.Kind.
func (m *mapping) killParameters() bson.Document {
	p := &parameters{mapping: m}
	p.texts("action")
	if kinds, _ := m.texts("kinds"); len(kinds) > 0 {
		p.put("kinds", kinds)
	}
	for _, key := range []string{"older", "every"} {
		if d, at := p.duration(key); at != nil {
			p.put(key, d.String())
		}
	}
	p.numbers(1_000_000_000_000, "documents")
	p.switches("dryRun")
	m.close("kinds", "documents", "older", "action", "dryRun", "every")
	return p.document(m.at)
}

// JobOf returns the job with a name, or nil.
func (c *Config) JobOf(name string) *Job {
	if i := slices.IndexFunc(c.Jobs, func(j Job) bool { return j.Name == name }); i >= 0 {
		return &c.Jobs[i]
	}
	return nil
}
