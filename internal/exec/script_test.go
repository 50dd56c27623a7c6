package exec

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
	"oxbow/internal/query"
	"oxbow/internal/route"
	"oxbow/internal/statement"
)

var rewrite = flag.Bool("rewrite", false, "write what happens into testdata in place of what was expected")

// TestScripts compares what happens with testdata/*.txt. A block is a heading "== layout: title", lines of a script, a line of dashes, and what happened:
// the commands that each backend was sent (sorted: parts go out at once) and what the client gets. The script has commands in relaxed Extended JSON, the last one of which
// is the one that is looked at, and what backends do with the next commands that match:
//
//	rs1 find c_0102 answers {"ok": 0, …}
//	rs1 update * lost            it was done, but no reply comes
//	rs1 * * unavailable          no connection
//	rs1 find c_0101 stalls       no reply before the command is cancelled
//
// "always" in front of the backend's name makes the rule last; "after rs2" makes it wait until that backend has answered a command. With -rewrite what happened is written back.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(text), "== ")
		out := blocks[0]
		for _, b := range blocks[1:] {
			head, want, _ := strings.Cut(b, "\n----\n")
			title, script, _ := strings.Cut(head, "\n")
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+title, func(t *testing.T) {
				layout, _, _ := strings.Cut(title, ":")
				got := newFixture(t, layout).play(t, script)
				out += fmt.Sprintf("== %s\n----\n%s\n", head, got)
				if strings.TrimSpace(want) != strings.TrimSpace(got) && !*rewrite {
					t.Errorf("%s\ngot:\n%s\nwant:\n%s", script, got, want)
				}
			})
		}
		if *rewrite {
			if err := os.WriteFile(file, []byte(out), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// fixture is an executor over scripted backends and a collection db.c with a layout.
type fixture struct {
	exec     *Executor
	backends map[string]*scripted
	source   plan.Source
}

// now is 2001-01-04T12:00:00Z.
var now = time.Date(2001, 1, 4, 12, 0, 0, 0, time.UTC).UnixMilli()

// newFixture has the days 1 to 3 January 2001 of "at" as partitions on the backend local ("time") or on rs1 ("remote"), two slots of "k" on
// rs1 and rs2 ("hash"), or four ("spread", and "parted" with ordered: partition).
func newFixture(t testing.TB, layout string) *fixture {
	t.Helper()
	f := &fixture{exec: &Executor{Backends: map[string]backend.Backend{}}, backends: map[string]*scripted{}}
	c := &catalog.Collection{Database: "db", Name: "c", Created: true}
	add := func(p route.Partition) {
		if f.backends[p.Backend] == nil {
			f.backends[p.Backend] = openScripted(t, p.Backend)
			f.exec.Backends[p.Backend] = f.backends[p.Backend]
		}
		p.Database, p.Generation, p.State = "db", 1, route.Active
		if b := f.backends[p.Backend]; b.Abilities().OneBatch { // which makes no partition for a write
			create := document(t, fmt.Sprintf(`{"create": %q, "$db": "db"}`, p.Collection))
			if reply, err := b.engine.Run(t.Context(), &backend.Request{Body: create}); err != nil || backend.Check(reply) != nil {
				t.Fatalf("create %s: %s, %v", p.Collection, reply, err)
			}
		}
		c.Table.Partitions = append(c.Table.Partitions, p)
	}
	switch layout {
	case "time", "remote":
		c.Table.Layout.Time = &route.Time{Field: bson.ParsePath("at"), Unit: route.Date, Every: route.Day, Zone: time.UTC, Ahead: 2}
		for day := range 3 {
			start := time.Date(2001, 1, 1+day, 0, 0, 0, 0, time.UTC)
			name := map[string]string{"time": "local", "remote": "rs1"}[layout]
			add(route.Partition{Backend: name, Collection: "c" + start.Format("_0102"), Slot: -1, Start: start.UnixMilli(), End: start.AddDate(0, 0, 1).UnixMilli()})
		}
	case "hash", "spread", "parted":
		c.Table.Layout.Hash = &route.Hash{Field: bson.ParsePath("k"), Count: map[string]int{"hash": 2, "spread": 4, "parted": 4}[layout]}
		for slot := range c.Table.Layout.Hash.Count {
			add(route.Partition{Backend: "rs" + strconv.Itoa(slot%2+1), Collection: "c_" + strconv.Itoa(slot), Slot: slot, Start: route.MinTime, End: route.MaxTime})
		}
	default:
		t.Fatalf("there is no layout %q", layout)
	}
	f.source = plan.Source{Database: "db", Name: "c", Collection: c, ByPartition: layout == "parted"}
	return f
}

// play runs a script and tells what its last command did.
func (f *fixture) play(t *testing.T, script string) string {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(script), "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "{") {
			f.rule(t, line)
			continue
		}
		for _, b := range f.backends {
			b.rest()
		}
		got := f.run(t, document(t, line))
		if i == len(lines)-1 {
			return f.sent() + got
		}
		if strings.HasPrefix(got, "error") {
			t.Fatalf("%s\n%s", line, got)
		}
	}
	t.Fatal("the script does not end in a command")
	return ""
}

func (f *fixture) rule(t *testing.T, line string) {
	t.Helper()
	r := &rule{times: 1}
	if rest, ok := strings.CutPrefix(line, "always "); ok {
		line, r.times = rest, -1
	}
	if rest, ok := strings.CutPrefix(line, "after "); ok {
		var other string
		other, line, _ = strings.Cut(rest, " ")
		r.after = f.backends[other]
	}
	words := strings.SplitN(line, " ", 5)
	if len(words) < 4 || f.backends[words[0]] == nil {
		t.Fatalf("no rule: %s", line)
	}
	r.command, r.collection, r.does = words[1], words[2], words[3]
	if len(words) == 5 {
		r.reply = document(t, words[4])
	}
	b := f.backends[words[0]]
	b.rules = append(b.rules, r)
}

// sent prints what the backends were sent.
func (f *fixture) sent() string {
	var lines []string
	for name, b := range f.backends {
		for _, s := range b.rest() {
			lines = append(lines, name+": "+s.String()+"\n")
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// run plans and runs a command, and prints what the client gets.
func (f *fixture) run(t *testing.T, body bson.Document) string {
	t.Helper()
	body = inDatabase(body)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	name, _, _ := bson.First(body)
	got, err := runners[name](ctx, f, body)
	if err != nil {
		e := mongoerr.From(err)
		got = fmt.Sprintf("error %s: %s\n", e.Code, e.Message)
		if e.Info != nil {
			got += "  " + e.Info.String() + "\n"
		}
		if e.Labels != nil {
			got += fmt.Sprintf("  labels %v\n", e.Labels)
		}
	}
	return got
}

var (
	env   = query.Env{NowMillis: now}
	newID = func() [12]byte { return [12]byte{11: 1} }
)

// runners run each command as the command package does.
var runners = map[string]func(context.Context, *fixture, bson.Document) (string, error){
	"find": func(ctx context.Context, f *fixture, body bson.Document) (string, error) {
		s, err := statement.ParseFind(body)
		if err != nil {
			return "", err
		}
		p, err := plan.NewFind(s, f.source, env)
		if err != nil {
			return "", err
		}
		if s.BatchSize > 0 {
			p.BatchSize = s.BatchSize
		}
		return drain(ctx, f.exec.Find(p))
	},
	"aggregate": func(ctx context.Context, f *fixture, body bson.Document) (string, error) {
		s, err := statement.ParseAggregate(body)
		if err != nil {
			return "", err
		}
		pipeline, err := query.ParsePipeline(s.Pipeline, query.PipelineOptions{Env: env, MaxBytes: 1 << 20})
		if err != nil {
			return "", err
		}
		p, err := plan.NewAggregate(s, f.source, pipeline, env)
		if err != nil {
			return "", err
		}
		return drain(ctx, f.exec.Aggregate(p))
	},
	"count": func(ctx context.Context, f *fixture, body bson.Document) (string, error) {
		s, err := statement.ParseCount(body)
		if err != nil {
			return "", err
		}
		p, err := plan.NewCount(s, f.source, env)
		if err != nil {
			return "", err
		}
		n, err := f.exec.Count(ctx, p)
		return fmt.Sprintf("n %d\n", n), err
	},
	"distinct": func(ctx context.Context, f *fixture, body bson.Document) (string, error) {
		s, err := statement.ParseDistinct(body)
		if err != nil {
			return "", err
		}
		p, err := plan.NewDistinct(s, f.source, env)
		if err != nil {
			return "", err
		}
		values, err := f.exec.Distinct(ctx, p)
		return bson.Document(values).String() + "\n", err
	},
	"explain": func(ctx context.Context, f *fixture, body bson.Document) (string, error) {
		e, err := statement.ParseExplain(body)
		if err != nil {
			return "", err
		}
		s, err := statement.ParseFind(inDatabase(e.Command))
		if err != nil {
			return "", err
		}
		p, err := plan.NewFind(s, f.source, env)
		if err != nil {
			return "", err
		}
		parts, err := f.exec.Explain(ctx, plan.ExplainFind(p), "queryPlanner")
		var out strings.Builder
		for _, part := range parts {
			planner, _ := bson.Get(part, "queryPlanner")
			ns, _ := bson.Get(planner.Data, "namespace")
			text, _ := ns.StringValueOK()
			fmt.Fprintf(&out, "namespace %s\n", text)
		}
		return out.String(), err
	},
	"insert": func(ctx context.Context, f *fixture, body bson.Document) (string, error) {
		s, err := statement.ParseInsert(&backend.Request{Body: body})
		if err != nil {
			return "", err
		}
		p := plan.NewInsert(s, f.source, f.exec.Abilities, statement.Fill{NewID: newID}, now)
		return written(f.exec.Insert(ctx, p, options(&s.Generic)))
	},
	"update": func(ctx context.Context, f *fixture, body bson.Document) (string, error) {
		s, err := statement.ParseUpdate(&backend.Request{Body: body})
		if err != nil {
			return "", err
		}
		return written(f.exec.Write(ctx, plan.NewUpdate(s, f.source, f.exec.Abilities, newID, env), options(&s.Generic)))
	},
	"delete": func(ctx context.Context, f *fixture, body bson.Document) (string, error) {
		s, err := statement.ParseDelete(&backend.Request{Body: body})
		if err != nil {
			return "", err
		}
		return written(f.exec.Write(ctx, plan.NewDelete(s, f.source, f.exec.Abilities, env), options(&s.Generic)))
	},
	"findAndModify": func(ctx context.Context, f *fixture, body bson.Document) (string, error) {
		s, err := statement.ParseFindAndModify(body)
		if err != nil {
			return "", err
		}
		p, err := plan.NewFindAndModify(s, f.source, newID, env)
		if err != nil {
			return "", err
		}
		reply, err := f.exec.FindAndModify(ctx, p, options(&s.Generic))
		return reply.String() + "\n", err
	},
}

func inDatabase(body bson.Document) bson.Document {
	return with(body, func(dst []byte) []byte { return bsoncore.AppendStringElement(dst, "$db", "db") })
}

func options(g *statement.Generic) Options {
	o := Options{WriteConcern: g.WriteConcern, Comment: g.Comment}
	if g.HasTxnNumber {
		o.Retry = &Retry{LSID: g.LSID, Session: g.LSID, TxnNumber: g.TxnNumber, Stmt: func(i int32) int32 { return i }}
	}
	return o
}

func written(r *backend.WriteReply, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return with(nil, func(dst []byte) []byte { return r.Append(dst, true) }).String() + "\n", nil
}

// drain reads a stream to its end and closes it, whatever comes.
func drain(ctx context.Context, s query.Documents) (string, error) {
	var out strings.Builder
	for {
		doc, err := s.Next(ctx)
		if doc == nil || err != nil {
			if closeErr := s.Close(); err == nil {
				err = closeErr
			}
			return out.String(), err
		}
		out.WriteString(doc.String() + "\n")
	}
}
