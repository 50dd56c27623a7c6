package exec

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/memory"
	"oxbow/internal/plan"
)

// each sends a command to all targets, several at a time, and hands each reply with ok: 1 to take, concurrently for different i.
func (e *Executor) each(ctx context.Context, targets []plan.Target, c plan.Command, take func(i int, reply bson.Document) error) error {
	return e.eachWithin(ctx, nil, targets, c, take)
}

// eachWithin is each with an account for each target's reply, as newAccounts makes them; nil for none.
func (e *Executor) eachWithin(ctx context.Context, accounts []memory.Account, targets []plan.Target, c plan.Command, take func(i int, reply bson.Document) error) error {
	return e.spread(ctx, collectionOf(targets), len(targets), func(ctx context.Context, i int) error {
		var account *memory.Account
		if accounts != nil {
			account = &accounts[i]
		}
		reply, err := e.send(ctx, account, targets[i], c)
		if err != nil {
			return err
		}
		return take(i, reply)
	})
}

// collectionOf is the collection that all targets are partitions of.
func collectionOf(targets []plan.Target) string {
	if len(targets) == 0 {
		return ""
	}
	return targets[0].Logical
}

// newAccounts returns accounts for the replies of n targets, and what closes them.
func (e *Executor) newAccounts(n int) ([]memory.Account, func()) {
	accounts := make([]memory.Account, n)
	for i := range accounts {
		accounts[i] = e.Memory.Account(memory.Queries)
	}
	return accounts, func() {
		for i := range accounts {
			accounts[i].Close()
		}
	}
}

// Gather sends a command to all targets and returns their replies, each with ok: 1, in the order of the targets.
func (e *Executor) Gather(ctx context.Context, targets []plan.Target, c plan.Command) ([]bson.Document, error) {
	replies := make([]bson.Document, len(targets))
	if len(targets) == 0 {
		return replies, nil
	}
	return replies, e.each(ctx, targets, c, func(i int, reply bson.Document) error {
		replies[i] = reply
		return nil
	})
}

// Present is Gather for commands that look at each partition by itself: those that are dropped while they are looked at are left out of both lists.
func (e *Executor) Present(ctx context.Context, targets []plan.Target, c plan.Command) ([]plan.Target, []bson.Document, error) {
	all := make([]bson.Document, len(targets))
	err := e.spread(ctx, collectionOf(targets), len(targets), func(ctx context.Context, i int) (err error) {
		all[i], err = e.send(ctx, nil, targets[i], c)
		if err != nil && e.Gone != nil && e.Gone(targets[i]) {
			return nil
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	var present []plan.Target
	var replies []bson.Document
	for i, reply := range all {
		if reply != nil {
			present, replies = append(present, targets[i]), append(replies, reply)
		}
	}
	return present, replies, nil
}
