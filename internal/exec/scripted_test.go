package exec

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/bson"
)

// scripted is an embedded backend that does, for some commands, what no embedded engine does: fail, answer what it was told to, never answer. It keeps
// a log of what it was sent. Its name says what it can do: local takes a write over several namespaces, any other is as a remote server is.
type scripted struct {
	name   string
	engine *embedded.Backend

	mu       sync.Mutex
	rules    []*rule
	log      []sent
	answered chan struct{} // closed after its first answer of its own since the last rest
}

// rule is what becomes of the commands of that name on that collection; "*" is any.
type rule struct {
	command, collection string
	does                string        // what, in the words of the scripts: answers, unavailable, lost, stalls
	reply               bson.Document // of answers
	times               int           // how often it applies; -1: always
	after               *scripted     // it waits until that one has answered a command; nil: it does not
}

// sent is one command as it came.
type sent struct {
	command, database, collection string
	request                       *backend.Request
}

func openScripted(t testing.TB, name string) *scripted {
	t.Helper()
	e, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: name, FS: vfs.NewMem(), CacheBytes: 4 << 20, MemTableBytes: 2 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &scripted{name: name, engine: e, answered: make(chan struct{})}
}

func (s *scripted) Run(ctx context.Context, req *backend.Request) (bson.Document, error) {
	r := s.note(req)
	if r == nil {
		defer s.noteAnswer()
		return s.engine.Run(ctx, req)
	}
	if r.after != nil {
		<-r.after.firstAnswer()
	}
	switch r.does {
	case "answers":
		return slices.Clone(r.reply), nil
	case "unavailable":
		return nil, fmt.Errorf("%w: connection refused", backend.ErrUnavailable)
	case "lost":
		if _, err := s.engine.Run(ctx, req); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("connection closed before the reply came")
	case "stalls":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	panic("a script says " + r.does)
}

func (s *scripted) noteAnswer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.answered:
	default:
		close(s.answered)
	}
}

func (s *scripted) firstAnswer() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answered
}

// note logs a command and returns the rule that it meets.
func (s *scripted) note(req *backend.Request) *rule {
	one := parseSent(req)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, one)
	for _, r := range s.rules {
		if r.times != 0 && (r.command == "*" || r.command == one.command) && (r.collection == "*" || r.collection == one.collection) {
			r.times--
			return r
		}
	}
	return nil
}

func parseSent(req *backend.Request) sent {
	name, argument, _ := bson.First(req.Body)
	one := sent{command: name, request: &backend.Request{Body: slices.Clone(req.Body), Sequences: slices.Clone(req.Sequences), Targets: req.Targets}}
	one.collection, _ = argument.StringValueOK()
	if inner, ok := argument.DocumentOK(); ok && name == "explain" {
		_, argument, _ = bson.First(inner)
		one.collection, _ = argument.StringValueOK()
	}
	if v, ok := bson.Get(req.Body, "collection"); ok && name == "getMore" {
		one.collection, _ = v.StringValueOK()
	}
	db, _ := bson.Get(req.Body, "$db")
	one.database, _ = db.StringValueOK()
	return one
}

func (s *scripted) Abilities() backend.Abilities {
	return backend.Abilities{OneBatch: s.name == "local", Embedded: s.name == "local"}
}

func (s *scripted) Close() error { return nil }

// rest takes the log and leaves it empty.
func (s *scripted) rest() []sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log
	s.log, s.answered = nil, make(chan struct{})
	return log
}

// String prints a command with its statements counted, so that a log can be compared.
func (c sent) String() string {
	n := 0
	for _, s := range c.request.Sequences {
		n += len(s.Documents)
	}
	if n == 0 {
		return fmt.Sprintf("%s %s.%s", c.command, c.database, c.collection)
	}
	if c.request.Targets == nil {
		return fmt.Sprintf("%s %d on %s.%s", c.command, n, c.database, c.collection)
	}
	var targets []string
	for _, t := range c.request.Targets {
		targets = append(targets, t.String())
	}
	return fmt.Sprintf("%s %d on [%s]", c.command, n, strings.Join(targets, " "))
}

// document reads relaxed Extended JSON.
func document(t testing.TB, text string) bson.Document {
	t.Helper()
	var raw driver.Raw
	if err := driver.UnmarshalExtJSON([]byte(text), false, &raw); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return bson.Document(raw)
}
