package maintain

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestWorkersOfOneStepRegainItsTurn: where several workers of a step waited for the throttle, one after the other, and another job has the turn, all of them go on
// once it is free, and the step stands in the line once.
func TestWorkersOfOneStepRegainItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		all := newTurns(1, func() time.Duration { return time.Since(begun) })
		step, other := all.join(1), all.join(1)
		if err := step.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		step.lend()
		if err := other.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		regained := make(chan error, 2)
		go func() { regained <- step.regain(ctx) }()
		synctest.Wait() // it stands in the line
		step.lend()
		go func() { regained <- step.regain(ctx) }()
		synctest.Wait()
		other.leave()
		for range cap(regained) {
			if err := <-regained; err != nil {
				t.Errorf("a worker did not go on: %v", err)
			}
		}
		step.leave()
		if all.free != 1 || len(all.line) != 0 {
			t.Errorf("in the end %d turns are free and %d stand in the line, want 1 and none", all.free, len(all.line))
		}
	})
}

// TestWorkersThatGiveUpLeaveTheLine: the end of what the workers of a step wait with takes the step out of the line, and nobody's turn with it.
func TestWorkersThatGiveUpLeaveTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		all := newTurns(1, func() time.Duration { return time.Since(begun) })
		step, other := all.join(1), all.join(1)
		if err := other.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		regained := make(chan error, 2)
		for range cap(regained) {
			step.lend()
			go func() { regained <- step.regain(ctx) }()
			synctest.Wait()
		}
		cancel()
		for range cap(regained) {
			if err := <-regained; err == nil {
				t.Error("a worker has a turn that another job holds")
			}
		}
		if len(all.line) != 0 || !other.holding {
			t.Errorf("%d stand in the line, and the other job holds its turn: %v; want none and true", len(all.line), other.holding)
		}
		other.leave()
		if all.free != 1 {
			t.Errorf("in the end %d turns are free, want 1", all.free)
		}
	})
}
