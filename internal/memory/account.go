package memory

import "context"

// Small is what an account may hold without reserving it, in bytes: most commands and their replies.
const Small = 16 << 10

// Account is what one holder has reserved: a message, a reply, a sort, a cursor. It reserves in steps, so that most calls of Grow are an
// addition and a comparison. It is used by one goroutine at a time, and not copied once it has grown. The zero Account is without limit.
type Account struct {
	budget *Budget
	use    Use
	leads  bool  // goes beyond the limit, see Await
	used   int64 // what the holder holds
	held   int64 // what is reserved for it
}

// Account returns an empty account.
func (b *Budget) Account(u Use) Account { return Account{budget: b, use: u} }

// Grow tells that the holder is about to hold n bytes more, or with a negative n that it holds fewer. The error is ExceededMemoryLimit; then
// nothing has changed.
func (a *Account) Grow(n int64) error {
	a.used += n
	if n <= 0 || a.used <= a.held+Small {
		return nil
	}
	if err := a.reserve(); err != nil {
		a.used -= n
		return err
	}
	return nil
}

// Set is Grow to n bytes in all. What is reserved beyond that is given back.
func (a *Account) Set(n int64) error {
	if n < a.used {
		a.used = n
		a.trim()
		return nil
	}
	return a.Grow(n - a.used)
}

// reserve makes room for what is used.
func (a *Account) reserve() error {
	if a.budget == nil {
		return nil
	}
	n := a.step()
	if a.leads {
		a.budget.force(a.use, n)
	} else if err := a.budget.Reserve(a.use, n); err != nil {
		return err
	}
	a.held += n
	return nil
}

// step is how much to reserve for what is used: an eighth more, so that an account that grows steadily seldom asks.
func (a *Account) step() int64 { return a.used - a.held + max(Small, a.used/8) }

// Await is Grow for one that can wait until others have released memory: until ctx ends, whose cause is then the error. Of those that wait, one at
// a time goes on beyond the limit until its account is closed: or all could wait for each other, each with a part of what it needs.
func (a *Account) Await(ctx context.Context, n int64) error {
	a.used += n
	if a.used <= a.held+Small || a.budget == nil {
		return nil
	}
	step := a.step()
	if a.leads {
		a.budget.force(a.use, step)
	} else if !a.budget.take(a.use, step) {
		var err error
		if a.leads, err = a.budget.await(ctx, a.use, step); err != nil {
			a.used -= n
			return err
		}
	}
	a.held += step
	return nil
}

// trim gives back what is reserved and not used.
func (a *Account) trim() {
	if a.budget == nil {
		return
	}
	keep := int64(0)
	if a.used > Small {
		keep = a.used
	}
	if spare := a.held - keep; spare > 0 {
		a.held = keep
		a.budget.Release(a.use, spare)
	}
}

// Used is what the holder holds, in bytes.
func (a *Account) Used() int64 { return a.used }

// Close gives everything back. The account can be used again.
func (a *Account) Close() {
	a.used = 0
	if a.budget == nil {
		return
	}
	if a.held > 0 {
		a.budget.Release(a.use, a.held)
		a.held = 0
	}
	if a.leads {
		a.leads = false
		<-a.budget.lead
	}
}
