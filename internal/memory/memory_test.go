package memory

import (
	"context"
	"errors"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/mongoerr"
)

// TestAccounts lets random holders grow, shrink and end, and compares the budget with a plain sum of what they hold.
func TestAccounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1<<20, 64<<20).Draw(t, "limit")
		b := New(limit)
		accounts := make([]Account, 8)
		holds := make([]int64, len(accounts))
		for i := range accounts {
			accounts[i] = b.Account(Use(i % int(uses)))
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			i := rapid.IntRange(0, len(accounts)-1).Draw(t, "account")
			n := rapid.Int64Range(0, limit/4).Draw(t, "bytes")
			before := b.Figures().Used
			var err error
			want := holds[i]
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				err, want = accounts[i].Grow(n), holds[i]+n
			case 1:
				err, want = accounts[i].Set(n), n
			case 2:
				n = min(n, holds[i])
				err, want = accounts[i].Grow(-n), holds[i]-n
			case 3:
				accounts[i].Close()
				want = 0
			}
			if err == nil {
				holds[i] = want
			} else if !mongoerr.Is(err, mongoerr.ExceededMemoryLimit) || b.Figures().Used != before {
				t.Fatalf("%v; %d reserved before, %d after", err, before, b.Figures().Used)
			}
			check(t, b, accounts, holds)
		}
		for i := range accounts {
			accounts[i].Close()
		}
		if f := b.Figures(); f.Used != 0 || f.By != [uses]int64{} {
			t.Fatalf("all closed: %+v", f)
		}
	})
}

func check(t *rapid.T, b *Budget, accounts []Account, holds []int64) {
	f := b.Figures()
	var by [uses]int64
	for i := range accounts {
		if accounts[i].Used() != holds[i] {
			t.Fatalf("account %d says %d, holds %d", i, accounts[i].Used(), holds[i])
		}
		if accounts[i].held < holds[i]-Small {
			t.Fatalf("account %d holds %d and has reserved %d", i, holds[i], accounts[i].held)
		}
		by[i%int(uses)] += accounts[i].held
	}
	sum := int64(0)
	for u, n := range by {
		sum += n
		if n > f.Limit/8*share[u] {
			t.Fatalf("%s: %d of %d", Use(u), n, f.Limit)
		}
	}
	if by != f.By || f.Used != sum || f.Used > f.Limit || f.Peak < f.Used {
		t.Fatalf("%v reserved, the budget says %+v", by, f)
	}
}

// TestNone: without a budget nothing is refused.
func TestNone(t *testing.T) {
	var b *Budget
	a := b.Account(Queries)
	if err := errors.Join(a.Grow(1<<60), a.Set(1), a.Await(t.Context(), 1<<60), b.Reserve(Cursors, 1<<60)); err != nil {
		t.Error(err)
	}
	b.Release(Cursors, 1<<60)
	a.Close()
	if b.Figures() != (Figures{}) {
		t.Errorf("%+v", b.Figures())
	}
}

// TestAwait: many holders, each of which needs more than a fair part before it is done, all get through: one of them goes
// beyond the limit, by what it needs itself and no more.
func TestAwait(t *testing.T) {
	const limit, each, step, holders = 8 << 20, 2 << 20, 64 << 10, 50
	b := New(limit)
	var wait sync.WaitGroup
	for range holders {
		wait.Go(func() {
			a := b.Account(Messages)
			defer a.Close()
			for range each / step {
				if err := a.Await(context.Background(), step); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wait.Wait()
	f := b.Figures()
	if f.Used != 0 || f.Peak > limit/8*share[Messages]+each*5/4 || len(b.lead) != 0 {
		t.Errorf("%+v", f)
	}
}

// TestAwaitEnds: a holder that waits gives up when its context ends, with nothing reserved for what it asked.
func TestAwaitEnds(t *testing.T) {
	b := New(1 << 20)
	full, leader := b.Account(Messages), b.Account(Messages)
	if err := full.Grow(400 << 10); err != nil {
		t.Fatal(err)
	}
	if err := leader.Await(t.Context(), 1<<20); err != nil || !leader.leads {
		t.Fatalf("the first that waits goes on: %v", err)
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	third := b.Account(Messages)
	if err := third.Await(ctx, 1<<20); err != cause || third.Used() != 0 || third.held != 0 {
		t.Errorf("%v, %+v", err, third)
	}
	leader.Close()
	full.Close()
	if err := third.Await(t.Context(), 200<<10); err != nil || third.leads {
		t.Errorf("there is room again: %v", err)
	}
	third.Close()
	if f := b.Figures(); f.Used != 0 || f.Waited != 2 {
		t.Errorf("%+v", f)
	}
}
