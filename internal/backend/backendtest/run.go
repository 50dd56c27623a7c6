package backendtest

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
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
func Run(t *testing.T, open func(t *testing.T) backend.Backend) {
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
		runScript(t, b, strings.TrimSuffix(strings.TrimPrefix(file, "testdata/"), ".txt"), string(text))
	}
	for _, c := range contracts {
		t.Run(c.name, func(t *testing.T) { c.run(t, b) })
	}
	t.Run("closed", func(t *testing.T) { testClosed(t, open(t)) })
}

func runScript(t *testing.T, b backend.Backend, name, text string) {
	s, err := parseScript(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for i, c := range s.cases {
		t.Run(name+"/"+c.name, func(t *testing.T) {
			if c.embedded && !b.Abilities().Embedded {
				t.Skip("a case of the embedded engine's own")
			}
			db := fmt.Sprintf("contract_%s_%d", name, i)
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
