package memory

import "context"

// Small is what an account may hold without reserving it, in bytes: most commands and their replies.
const Small = 16 << 10

// Account is what one holder has reserved: a message, a reply, a sort, a cursor. It reserves in steps, so that most calls of Grow are an
// addition and a comparison. It is used by one goroutine at a time, and not copied once it has grown. The
// zero Account and a nil one are without limit.
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
	if a.Try(n) {
		return nil
	}
	a.used += n
	step := a.step()
	a.used -= n
	return a.budget.refuse(a.use, step)
}

// Try is Grow that reports false instead of an error.
func (a *Account) Try(n int64) bool {
	if a == nil {
		return true
	}
	a.used += n
	if n <= 0 {
		if a.held > 2*a.used+Small {
			a.trim()
		}
		return true
	}
	if a.used <= a.held+Small || a.budget == nil {
		return true
	}
	step := a.step()
	if a.leads {
		a.budget.force(a.use, step)
	} else if !a.budget.take(a.use, step) {
		a.used -= n
		return false
	}
	a.held += step
	return true
}

// Set is Grow to n bytes in all. What is reserved beyond that is given back.
func (a *Account) Set(n int64) error {
	if a == nil {
		return nil
	}
	if n < a.used {
		a.used = n
		a.trim()
		return nil
	}
	return a.Grow(n - a.used)
}

// step is how much to reserve for what is used: an eighth more, so that an account that grows steadily seldom asks.
func (a *Account) step() int64 { return a.used - a.held + max(Small, a.used/8) }

// Await is Grow for one that can wait until others have released memory: until ctx ends, whose cause is then the error. Of those that wait, one at
// a time goes on beyond the limit until its account is closed: or all could wait for each other, each with a part of what it needs.
func (a *Account) Await(ctx context.Context, n int64) error {
	if a.Try(n) {
		return nil
	}
	a.used += n
	step := a.step()
	leads, err := a.budget.await(ctx, a.use, step)
	if err != nil {
		a.used -= n
		return err
	}
	a.leads = leads
	a.held += step
	return nil
}

// Force is Grow whatever the limit, for what is there already and has to be kept.
func (a *Account) Force(n int64) {
	if a.Try(n) {
		return
	}
	a.used += n
	step := a.step()
	a.budget.force(a.use, step)
	a.held += step
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
func (a *Account) Used() int64 {
	if a == nil {
		return 0
	}
	return a.used
}

// Close gives everything back. The account can be used again.
func (a *Account) Close() {
	if a == nil {
		return
	}
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
