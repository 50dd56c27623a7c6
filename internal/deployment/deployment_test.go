package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/deployment"
	"oxbow/internal/deployment/scripted"
)

// The scripted set has one of each kind of member.
func newSet() *scripted.Set {
	return scripted.New("rs", &scripted.Member{State: "PRIMARY"}, &scripted.Member{State: "SECONDARY", Tags: map[string]string{"use": "reports"}, Lag: 3 * time.Second},
		&scripted.Member{State: "SECONDARY", Hidden: true, Delay: time.Hour, NoVote: true, Lag: time.Hour + time.Second}, &scripted.Member{State: "ARBITER"})
}

// shown is a line a member.
func shown(members []deployment.Member) string {
	var b strings.Builder
	for i := range members {
		m := &members[i]
		fmt.Fprintf(&b, "%s %s votes:%d", m.Host, m.State, m.Votes)
		if m.Hidden {
			b.WriteString(" hidden")
		}
		if m.Delay > 0 {
			fmt.Fprintf(&b, " delay:%v", m.Delay)
		}
		if m.Tags != nil {
			fmt.Fprintf(&b, " %v", m.Tags)
		}
		if m.Why != "" {
			fmt.Fprintf(&b, " (%s)", m.Why)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// wantMembers compares what a deployment says of its members.
func wantMembers(t *testing.T, d *deployment.Deployment, want string) {
	t.Helper()
	members, err := d.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := shown(members); got != want {
		t.Errorf("members:\n%swant:\n%s", got, want)
	}
}

func TestMembersOfASet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := newSet()
		d := deployment.Of("rs", set.Whole())
		defer d.Close()
		wantMembers(t, d, `rs-0:27017 primary votes:1
rs-1:27017 secondary votes:1 map[use:reports]
rs-2:27017 secondary votes:0 hidden delay:1h0m0s
rs-3:27017 arbiter votes:1
`)
		sets, err := d.Sets(t.Context())
		if err != nil || len(sets) != 1 {
			t.Fatal(sets, err)
		}
		// Three vote, so two have to confirm.
		s := sets[0]
		if s.Primary != "rs-0:27017" || s.Term != 1 || s.Needed != 2 || s.Partial != "" {
			t.Errorf("%+v", s)
		}
		for i, want := range []time.Duration{0, 3 * time.Second, time.Second, 0} {
			if got := s.Members[i].Behind(s.Leader().Applied); got != want {
				t.Errorf("member %d is %v behind, not %v", i, got, want)
			}
		}
	})
}

// TestMembersThatAreAway has members that don't answer, do something else, and that only the asker does not reach.
func TestMembersThatAreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := newSet()
		d := deployment.Of("rs", set.Whole())
		defer d.Close()
		set.Change(func() {
			set.Members[0].Down = true
			set.Members[1].State = "ROLLBACK"
			set.Members[3].Silent = true
		})
		wantMembers(t, d, `rs-0:27017 unreachable votes:1 (ask with hello: backend unavailable: connection refused by rs-0:27017)
rs-1:27017 other votes:1 map[use:reports] (it is rollback)
rs-2:27017 secondary votes:0 hidden delay:1h0m0s
rs-3:27017 arbiter votes:1 (ask with hello: context deadline exceeded)
`)
		set.Change(func() { set.Members[2].Down = true })
		if members, err := d.Members(t.Context()); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("a set without a member that answers: %v, %v", members, err)
		}
	})
}

// TestMembersWithoutRights has a user who may ask for hello only: hidden members are not seen then, and the set says that it does not know all.
func TestMembersWithoutRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := newSet()
		for _, m := range set.Members {
			m.Refuse = map[string]bool{"replSetGetStatus": true}
		}
		d := deployment.Of("rs", set.Whole())
		defer d.Close()
		wantMembers(t, d, `rs-0:27017 primary votes:1
rs-1:27017 secondary votes:1 map[use:reports]
rs-3:27017 arbiter votes:1
`)
		sets, err := d.Sets(t.Context())
		if err != nil || len(sets) != 1 || !strings.Contains(sets[0].Partial, "not authorized") || sets[0].Primary != "rs-0:27017" || sets[0].Needed != 2 {
			t.Errorf("%+v, %v", sets, err)
		}
	})
}

// TestConfigurationIsReadWhenItChanges counts how often a set's configuration is read.
func TestConfigurationIsReadWhenItChanges(t *testing.T) {
	set := newSet()
	d := deployment.Of("rs", set.Whole())
	defer d.Close()
	look := func() deployment.Set {
		sets, err := d.Sets(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return sets[0]
	}
	look()
	look()
	set.Reconfigure(func() { set.Members[1].Hidden = true })
	if s := look(); !s.Members[1].Hidden {
		t.Errorf("%+v", s.Members[1])
	}
	set.Change(func() {
		if n := set.Members[0].Asked["replSetGetConfig"]; n != 2 {
			t.Errorf("read %d times", n)
		}
	})
}

func TestMembersOfACluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := scripted.New("a", &scripted.Member{State: "SECONDARY"}, &scripted.Member{State: "PRIMARY"})
		b := scripted.New("b", &scripted.Member{State: "PRIMARY"})
		c := &scripted.Cluster{Router: "router:27017", Shards: []*scripted.Set{a, b}}
		d := deployment.Of("cluster", c.Whole())
		defer d.Close()
		wantMembers(t, d, "router:27017 router votes:0\na-0:27017 secondary votes:1\na-1:27017 primary votes:1\nb-0:27017 primary votes:1\n")
		sets, err := d.Sets(t.Context())
		if err != nil || len(sets) != 2 || sets[0].Primary != "a-1:27017" || sets[1].Primary != "b-0:27017" {
			t.Errorf("%+v, %v", sets, err)
		}
		b.Change(func() { b.Members[0].Down = true })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := d.Sets(ctx); err == nil || !strings.Contains(err.Error(), "ask shard b") {
			t.Errorf("a shard that is away: %v", err)
		}
		members, err := d.Members(t.Context())
		if err != nil || len(members) != 4 || members[3].State != deployment.Unreachable || !strings.Contains(members[0].Why, "ask shard b") {
			t.Errorf("%s, %v", shown(members), err)
		}
	})
}

// TestRouterWithoutShards has routers that are all there is, such as another Oxbow, or that don't tell.
func TestRouterWithoutShards(t *testing.T) {
	for _, c := range []*scripted.Cluster{{Router: "oxbow:27017"}, {Router: "oxbow:27017", Refuse: map[string]bool{"listShards": true}}} {
		d := deployment.Of("oxbow", c.Whole())
		defer d.Close()
		members, err := d.Members(t.Context())
		if err != nil || len(members) != 1 || members[0].State != deployment.Router || members[0].Host != "oxbow:27017" {
			t.Errorf("%s, %v", shown(members), err)
		}
	}
}

func TestEmbedded(t *testing.T) {
	b, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: "data", FS: vfs.NewMem()}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	d := deployment.Of("local", b)
	defer d.Close()
	wantMembers(t, d, "local primary votes:0\n")
	if on, err := d.On(t.Context(), "local"); err != nil || on != backend.Backend(b) {
		t.Errorf("%v, %v", on, err)
	}
	if _, err := d.On(t.Context(), "elsewhere"); err == nil {
		t.Error("there is no such member")
	}
	if sets, err := d.Sets(t.Context()); err != nil || sets != nil {
		t.Errorf("%v, %v", sets, err)
	}
}
