package catalog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"oxbow/internal/auth"
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/bson/bsontest"
	"oxbow/internal/mongoerr"
)

// Whoever loses a comparison decides again, by what the other one made of the catalog.
func TestLosers(t *testing.T) {
	ensure := func(days ...int) func(context.Context, *member) error {
		return func(ctx context.Context, m *member) error {
			_, err := m.Ensure(ctx, "fla.log", places(days...))
			return err
		}
	}
	on10 := func(do func(*member) func(context.Context, string, string) error) func(context.Context, *member) error {
		return func(ctx context.Context, m *member) error { return do(m)(ctx, "fla.log", "fla.log_20260110") }
	}
	drop := func(ctx context.Context, m *member) error {
		_, err := m.Drop(ctx, "fla.log")
		return err
	}
	hide := on10(func(m *member) func(context.Context, string, string) error { return m.Hide })
	undo := on10(func(m *member) func(context.Context, string, string) error { return m.Undo })
	dropOne := on10(func(m *member) func(context.Context, string, string) error { return m.DropPartition })
	decided := func(err error) bool { return errors.Is(err, ErrDecided) }
	fine := func(err error) bool { return err == nil }
	for name, c := range map[string]struct {
		before        func(context.Context, *member) error // of a
		loses         func(context.Context, *member) error // a's
		command, part string                               // before which, of a, the other one comes
		wins          func(context.Context, *member) error // b's
		err           func(error) bool                     // of a
		want          string
	}{
		"two first records":                   {nil, ensure(10), "insert", `"insert": "collections"`, ensure(11), fine, "10 active, 11 active"},
		"two ranges at once":                  {ensure(9), ensure(10), "update", `"update": "collections"`, ensure(11), fine, "09 active, 10 active, 11 active"},
		"one range twice":                     {ensure(9), ensure(10), "update", `"update": "collections"`, ensure(10), fine, "09 active, 10 active"},
		"recorded, and the collection drops":  {ensure(9), ensure(10), "insert", "creating", drop, fine, "10_2 active"},
		"made, and the collection drops":      {ensure(9), ensure(10), "update", `"active"`, drop, fine, "10_2 active"},
		"two hide":                            {ensure(10), hide, "update", `"hidden"`, hide, decided, "10 hidden"},
		"hides what goes":                     {ensure(10), hide, "update", `"hidden"`, dropOne, decided, ""},
		"two drop":                            {ensure(10), dropOne, "update", `"dropping"`, dropOne, decided, ""},
		"two drop all":                        {ensure(10), drop, "update", `"update": "collections"`, drop, fine, ""},
		"drops all while another range comes": {ensure(10), drop, "update", `"update": "partitions"`, ensure(11), fine, "11 active"},
		"brings back what goes": {func(ctx context.Context, m *member) error { return errors.Join(ensure(10)(ctx, m), hide(ctx, m)) },
			undo, "update", `"returning"`, dropOne, decided, ""},
		"brought back, and it goes": {func(ctx context.Context, m *member) error { return errors.Join(ensure(10)(ctx, m), hide(ctx, m)) },
			undo, "update", `"active"`, dropOne, func(error) bool { return true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			share(t, sharedDays, 3, func(t *testing.T, s *several) {
				a, b := s.gateways[0], s.gateways[1]
				ctx := t.Context()
				if c.before != nil {
					if err := c.before(ctx, a); err != nil {
						t.Fatal(err)
					}
					time.Sleep(2 * time.Second)
				}
				came := false
				a.way.before(c.command, c.part, func() error {
					came = true
					if err := c.wins(ctx, b); err != nil {
						t.Errorf("the other one: %v", err)
					}
					return nil
				})
				if err := c.loses(ctx, a); !c.err(err) {
					t.Errorf("the loser: %v", err)
				}
				if !came {
					t.Error("the other one never came")
				}
				s.agree(c.want)
				var want []string
				for _, state := range strings.Split(c.want, ", ") {
					if name, _, ok := strings.Cut(state, " "); ok {
						want = append(want, "log_202601"+name)
					}
				}
				if got := s.physical(); !slices.Equal(got, want) {
					t.Errorf("physical: %q, want %q", got, want)
				}
			})
		})
	}
}

// A gateway that stands still for so long that others have finished what it began, and undone it, changes nothing on waking, however far it had come.
func TestWakesUpLate(t *testing.T) {
	for _, c := range []struct{ command, part string }{
		{"listCollections", "log_20260110"}, {"insert", "creating"}, {"create", "log_20260110"}, {"update", `"active"`},
	} {
		share(t, sharedDays, 2, func(t *testing.T, s *several) {
			a, b := s.gateways[0], s.gateways[1]
			a.ensure(t, 9)
			awake := make(chan struct{})
			a.way.sleepAt(c.command, c.part, awake)
			failed := make(chan error)
			go func() {
				_, err := a.Ensure(t.Context(), "fla.log", places(10))
				failed <- err
			}()
			time.Sleep(time.Minute)
			if err := b.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
			b.ensure(t, 10)
			if _, err := b.Drop(t.Context(), "fla.log"); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Minute)
			if got := b.states(); got != "" {
				t.Errorf("not dropped: %q", got)
			}
			close(awake)
			// It may decide again, by what there is now and under another lease.
			want, there := "", []string(nil)
			if err := <-failed; err == nil {
				want, there = "10_2 active", []string{"log_20260110_2"}
			}
			s.agree(want)
			got := s.physical()
			if c.command == "create" { // what was on its way already is not held up
				got = slices.DeleteFunc(got, func(name string) bool { return name == "log_20260110" })
			}
			if !slices.Equal(got, there) {
				t.Errorf("%s: there is %q, want %q", c.command, got, there)
			}
		})
	}
}

// sleepAt stops everything from a command on until the gateway is awake.
func (w *way) sleepAt(command, part string, awake chan struct{}) {
	var asleep atomic.Bool
	meet := func(name string, body bson.Document) error {
		if asleep.Load() || name == command && strings.Contains(body.String(), part) {
			asleep.Store(true)
			<-awake
		}
		return nil
	}
	w.meet.Store(&meet)
}

// Between the look at the catalog and a send the lease can run out.
func TestLeaseIsAskedAtTheSend(t *testing.T) {
	share(t, sharedDays, 1, func(t *testing.T, s *several) {
		a := s.gateways[0]
		a.ensure(t, 10)
		if err := a.Check(); err != nil {
			t.Fatal(err)
		}
		a.way.cut()
		time.Sleep(10 * time.Second)
		ns := backend.Namespace{Database: "fla", Collection: "log_20260110"}
		if _, err := a.Begin("fla.log", "r", ns); !mongoerr.Is(err, mongoerr.PrimarySteppedDown) {
			t.Errorf("an insert is sent without a lease: %v", err)
		}
		if !a.members.sends.empty() {
			t.Error("what was refused counts as under way")
		}
		a.way.mend()
	})
}

func TestUsersOnEveryGateway(t *testing.T) {
	share(t, sharedDays, 2, func(t *testing.T, s *several) {
		a, b := s.gateways[0], s.gateways[1]
		ctx := t.Context()
		name := auth.UserName{Name: "ada", Database: "admin"}
		ada := auth.User{UserName: name}
		a.way.before("insert", `"users"`, func() error { return b.CreateUser(ctx, ada) })
		if err := a.CreateUser(ctx, ada); !mongoerr.Is(err, mongoerr.UserExists) {
			t.Errorf("made twice: %v", err)
		}
		role := func(role string) func(*auth.User) error {
			return func(u *auth.User) error {
				u.Roles = append(u.Roles, auth.Role{Name: role, Database: "fla"})
				return nil
			}
		}
		a.way.before("update", `"users"`, func() error { return b.ChangeUser(ctx, name, role("read")) })
		if err := a.ChangeUser(ctx, name, role("dbAdmin")); err != nil {
			t.Fatal(err)
		}
		for _, m := range s.gateways {
			if u := m.Users().User(name); u == nil || len(u.Roles) != 2 {
				t.Errorf("%+v", u)
			}
		}
		if n, err := b.DropUsers(ctx, func(n auth.UserName) bool { return n == name }); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		if a.Users().User(name) != nil {
			t.Error("dropped through one gateway, and still known to the other")
		}
	})
}

// A gateway whose configuration contradicts what others made serves nothing, and they don't wait for it.
func TestContradiction(t *testing.T) {
	share(t, sharedBoth, 1, func(t *testing.T, s *several) {
		other := s.join(strings.Replace(sharedBoth, "count: 3", "count: 4", 1))
		s.gateways[0].ensure(t, 10)
		time.Sleep(10 * time.Second)
		if err := other.Check(); !mongoerr.Is(err, mongoerr.PrimarySteppedDown) || !strings.Contains(err.Error(), "hash.count") {
			t.Errorf("%v", err)
		}
		if got := s.gateways[0].states(); got != "10_0 active, 10_1 active, 10_2 active" {
			t.Errorf("%q", got)
		}
	})
}

// Catalogs that were written before several gateways could share one are read, and changed.
func TestOlderCatalog(t *testing.T) {
	r := newRig(t, byDay)
	r.ensure("fla.log", 10, 11)
	for _, c := range []struct{ collection, fields string }{
		{"collections", `"change": "", "by": "", "making": "", "listed": "", "lister": ""`}, {"partitions", `"change": "", "by": "", "was": ""`},
	} {
		r.run("local", `{"update": "`+c.collection+`", "updates": [{"q": {}, "u": {"$unset": {`+c.fields+`}}, "multi": true}], "$db": "oxbow"}`)
	}
	r.run("local", `{"update": "partitions", "updates": [{"q": {"collection": "log_20260111"}, "u": {"$set": {"state": "creating"}}}], "$db": "oxbow"}`)
	r.open(byDay)
	r.want("finished", r.states("fla.log"), "log_20260110 active", "log_20260111 active")
	r.ensure("fla.log", 12)
	if err := r.Hide(t.Context(), "fla.log", "fla.log_20260110"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.CreateIndexes(t.Context(), "fla.log", []bson.Document{bsontest.Doc(t, `{"key": {"a": 1}, "name": "a_1"}`)}); err != nil {
		t.Fatal(err)
	}
	r.open(byDay)
	r.want("changed", r.states("fla.log"), "log_20260110 hidden", "log_20260111 active", "log_20260112 active")
	if found, err := r.Drop(t.Context(), "fla.log"); !found || err != nil {
		t.Fatal(found, err)
	}
	r.want("physical", r.physical("local", "fla"))
}

// Two gateways finish what a third one left. Who comes second finds documents in the partition, and does not take it for somebody else's collection.
func TestTwoFinish(t *testing.T) {
	share(t, sharedDays, 3, func(t *testing.T, s *several) {
		a, b, c := s.gateways[0], s.gateways[1], s.gateways[2]
		a.way.before("create", "log_20260110", func() error {
			go a.kill()
			return backend.ErrUnavailable
		})
		if _, err := a.Ensure(t.Context(), "fla.log", places(10)); err == nil {
			t.Error("it was not cut short")
		}
		<-a.kept
		s.gateways = s.gateways[1:]
		time.Sleep(15 * time.Second) // a's lease is ended
		came := false
		b.way.before("listCollections", "log_20260110", func() error {
			came = true
			c.ensure(t, 10)
			reply, err := s.server.Run(t.Context(), &backend.Request{Body: bsontest.Doc(t, `{"insert": "log_20260110", "documents": [{"_id": 1}], "$db": "fla"}`)})
			if err != nil || backend.Check(reply) != nil {
				t.Errorf("%s, %v", reply, err)
			}
			return nil
		})
		b.ensure(t, 10)
		if !came {
			t.Error("the other one never came")
		}
		s.agree("10 active")
		if got := s.physical(); !slices.Equal(got, []string{"log_20260110"}) {
			t.Errorf("physical: %q", got)
		}
	})
}
