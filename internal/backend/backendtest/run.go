package backendtest

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"strings"
	"testing"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

//go:embed testdata/*.txt
var scripts embed.FS

// Run checks the contract on backends that open makes. Databases whose names begin with "contract" are dropped.
func Run(t *testing.T, open func(t *testing.T) backend.Backend) { RunExcept(t, open, nil) }

// RunExcept is Run without the cases that except gives a reason for, by their names: of a script "insert/write concerns", of the rest as they stand.
// A name that no case has fails the test.
func RunExcept(t *testing.T, open func(t *testing.T) backend.Backend, except map[string]string) {
	unused := maps.Clone(except)
	excepted := func(t *testing.T, name string) {
		if reason, ok := except[name]; ok {
			delete(unused, name)
			t.Skip(reason)
		}
	}
	b := open(t)
	files, err := fs.Glob(scripts, "testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		text, err := scripts.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		runScript(t, b, strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".txt"), string(text), excepted)
	}
	for _, c := range contracts {
		t.Run(c.name, func(t *testing.T) {
			excepted(t, c.name)
			c.run(t, b)
		})
	}
	t.Run("closed", func(t *testing.T) { testClosed(t, open(t)) })
	for name := range unused {
		t.Errorf("there is no case %q to except", name)
	}
}

// Databases returns the names of the databases that the scripts use, which mostly have their documents in a collection c.
func Databases() ([]string, error) {
	var names []string
	files, err := fs.Glob(scripts, "testdata/*.txt")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := scripts.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s, err := parseScript(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for i := range s.cases {
			names = append(names, database(strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".txt"), i))
		}
	}
	return names, nil
}

// database is the database of a script's case.
func database(script string, i int) string { return fmt.Sprintf("contract_%s_%d", script, i) }

func runScript(t *testing.T, b backend.Backend, name, text string, excepted func(t *testing.T, name string)) {
	s, err := parseScript(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for i, c := range s.cases {
		t.Run(name+"/"+c.name, func(t *testing.T) {
			if c.embedded && !b.Abilities().Embedded {
				t.Skip("a case of the embedded engine's own")
			}
			excepted(t, name+"/"+c.name)
			db := database(name, i)
			dropDatabase(t, b, db)
			bound := bindings{}
			for _, step := range c.steps {
				if err := step.run(b, db, bound); err != nil {
					t.Errorf("%s.txt:%d: %s\n%v", name, step.line, step.command, err)
				}
			}
		})
	}
}

func dropDatabase(t *testing.T, b backend.Backend, db string) {
	t.Helper()
	if err := backend.Check(mustRun(t, b, db, `{"dropDatabase": 1}`)); err != nil {
		t.Fatalf("drop %s: %v", db, err)
	}
}

// run sends the step's command and compares the reply.
func (s step) run(b backend.Backend, db string, bound bindings) error {
	command, err := parseDocument(strings.ReplaceAll(s.command, "<db>", db))
	if err != nil {
		return fmt.Errorf("read the command: %w", err)
	}
	reply, err := b.Run(context.Background(), &backend.Request{Body: withDatabase(substitute(command, bound), db)})
	if err != nil {
		return err
	}
	if err := bson.Validate(reply, bson.MaxDepth); err != nil {
		return fmt.Errorf("the reply is malformed: %w", err)
	}
	expect := strings.ReplaceAll(s.expect, "<db>", db)
	if s.failure {
		return matchError(expect, reply)
	}
	want, err := parseDocument(expect)
	if err != nil {
		return fmt.Errorf("read the expectation: %w", err)
	}
	if err := matchReply(want, reply, bound); err != nil {
		return fmt.Errorf("%w\nreply: %s", err, text(reply))
	}
	return nil
}

// matchError compares a failed reply with "CodeName: part of the message".
func matchError(expect string, reply bson.Document) error {
	err := backend.Check(reply)
	if err == nil {
		return fmt.Errorf("no error, but %s", text(reply))
	}
	e := mongoerr.From(err)
	name, part, _ := strings.Cut(expect, ": ")
	said, _ := bson.Get(reply, "codeName")
	saidName, _ := said.StringValueOK()
	if saidName != name || e.Code.String() != name || !strings.Contains(e.Message, part) {
		return fmt.Errorf("the error is %s (%s): %s", saidName, e.Code, e.Message)
	}
	return nil
}

// parseDocument reads relaxed Extended JSON.
func parseDocument(text string) (bson.Document, error) {
	var raw driver.Raw
	if err := driver.UnmarshalExtJSON([]byte(text), false, &raw); err != nil {
		return nil, err
	}
	return bson.Document(raw), nil
}

// withDatabase adds $db where the command does not say it.
func withDatabase(command bson.Document, db string) bson.Document {
	if _, ok := bson.Get(command, "$db"); ok {
		return command
	}
	var raw driver.D
	if err := driver.Unmarshal(command, &raw); err != nil {
		panic(err)
	}
	out, err := driver.Marshal(append(raw, driver.E{Key: "$db", Value: db}))
	if err != nil {
		panic(err)
	}
	return out
}

func text(doc bson.Document) string {
	b, err := driver.MarshalExtJSON(driver.Raw(doc), false, false)
	if err != nil {
		return fmt.Sprintf("%x: %v", []byte(doc), err)
	}
	return string(b)
}

// mustRun runs a command given as Extended JSON and returns the reply.
func mustRun(t *testing.T, b backend.Backend, db, command string) bson.Document {
	t.Helper()
	body, err := parseDocument(command)
	if err != nil {
		t.Fatal(err)
	}
	reply, err := b.Run(context.Background(), &backend.Request{Body: withDatabase(body, db)})
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return reply
}
