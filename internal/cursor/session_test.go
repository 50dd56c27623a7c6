package cursor

import (
	"regexp"
	"testing"
	"testing/synctest"
	"time"
)

func TestSessionsEndWhenUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSessions(SessionTimeout)
		idle, err := s.Start("", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		used, _ := s.Start("", time.Now())
		time.Sleep(20 * time.Minute)
		if err := s.Touch(used, time.Now()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if expired := s.Sweep(time.Now()); len(expired) != 1 || expired[0] != idle {
			t.Fatalf("expired %v, want %v", expired, idle)
		}
		if s.Len() != 1 {
			t.Fatalf("%d sessions left", s.Len())
		}
		time.Sleep(20 * time.Minute)
		if expired := s.Sweep(time.Now()); len(expired) != 1 || expired[0] != used {
			t.Fatalf("expired %v, want %v", expired, used)
		}
	})
}

func TestSessionOfAnUnknownIdBegins(t *testing.T) {
	s := NewSessions(SessionTimeout)
	mine, theirs := SessionID{UUID: [16]byte{1}}, SessionID{UUID: [16]byte{1}, User: "other"}
	for _, id := range []SessionID{mine, theirs, mine} {
		if err := s.Touch(id, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if s.Len() != 2 {
		t.Fatalf("%d sessions: one UUID of two users is two sessions", s.Len())
	}
	s.End(mine, SessionID{UUID: [16]byte{9}})
	if left := s.List(nil); len(left) != 1 || left[0].ID != theirs {
		t.Fatalf("left: %v", left)
	}
}

func TestStartedSessionsAreUUIDs(t *testing.T) {
	s := NewSessions(SessionTimeout)
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	for range 100 {
		id, err := s.Start("", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if !form.MatchString(id.String()) {
			t.Fatalf("%s is no UUID of version 4", id)
		}
	}
	if s.Len() != 100 {
		t.Fatalf("%d of 100 sessions", s.Len())
	}
}
