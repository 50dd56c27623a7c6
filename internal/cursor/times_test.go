package cursor

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// TestTimes: a session's times of each deployment only grow, whoever notes them, and go with the session.
func TestTimes(t *testing.T) {
	s := NewSessions(SessionTimeout)
	now := time.Unix(1, 0)
	id, err := s.Start("", now)
	if err != nil {
		t.Fatal(err)
	}
	times := s.Times(id)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for at := range uint64(100) {
				times.Advance("rs1", at, at <= 50)
				times.Advance(fmt.Sprint("rs", i+2), 7, false)
			}
		})
	}
	wg.Wait()
	if times.Wrote("rs1") != 50 || times.Seen("rs1") != 99 || times.Wrote("rs2") != 0 || times.Seen("rs2") != 7 || times.Seen("none") != 0 {
		t.Errorf("rs1: %d, %d; rs2: %d, %d", times.Wrote("rs1"), times.Seen("rs1"), times.Wrote("rs2"), times.Seen("rs2"))
	}
	if n := len(times.mu.of); n != 5 {
		t.Errorf("%d deployments are remembered", n)
	}
	s.Sweep(now.Add(SessionTimeout))
	if s.Times(id) != nil {
		t.Error("the times of a session that has ended are kept")
	}
	if err := s.Touch(id, now); err != nil {
		t.Fatal(err)
	}
	if s.Times(id).Seen("rs1") != 0 {
		t.Error("a session that begins anew has seen something")
	}
}
