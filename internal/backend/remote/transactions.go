package remote

import (
	"sync"
	"sync/atomic"
	"time"

	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// transactions remembers which router of a sharded cluster runs the latest transaction of each session: every statement and the end have to go there
// (https://www.mongodb.com/docs/manual/core/transactions-sharded-clusters/). A replica set has one primary, so nothing is remembered of it. Safe for
// concurrent use.
type transactions struct {
	any atomic.Bool // one was ever noted
	mu  struct {
		sync.Mutex
		by    map[string]pinned // by lsid
		sweep int               // the number of sessions at which the idle ones are looked for next
	}
}

type pinned struct {
	number int64
	server address.Address
	used   time.Time
}

// statement is what a command says about the transaction that it belongs to.
type statement struct {
	session string // the lsid's bytes
	number  int64
	begins  bool
	moves   bool // it ends one that any router can end, if need be: its recoveryToken says how
}

// statementOf reads a command; false if it is no statement of a transaction.
func statementOf(name string, body bson.Document) (statement, bool) {
	var s statement
	var session []byte
	in := false
	it := bson.Elements(body)
	for it.Next() {
		switch v := it.Value(); string(it.Key()) {
		case "autocommit":
			commit, isBool := v.BooleanOK()
			in = isBool && !commit
		case "startTransaction":
			s.begins, _ = v.BooleanOK()
		case "txnNumber":
			s.number, _ = v.AsInt64OK()
		case "lsid":
			session = v.Data
		case "recoveryToken":
			s.moves = name == "commitTransaction" || name == "abortTransaction"
		}
	}
	if in {
		s.session = string(session)
	}
	return s, in
}

// holder returns the router that runs a statement's transaction, if it is known.
func (t *transactions) holder(s statement) (address.Address, bool) {
	if s.begins {
		return "", false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p, ok := t.mu.by[s.session]
	return p.server, ok && p.number == s.number
}

// note remembers the router that a statement went to.
func (t *transactions) note(s statement, server address.Address, now time.Time) {
	t.any.Store(true)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.by == nil {
		t.mu.by, t.mu.sweep = map[string]pinned{}, firstSweep
	}
	t.mu.by[s.session] = pinned{s.number, server, now}
	if len(t.mu.by) < t.mu.sweep {
		return
	}
	for session, p := range t.mu.by {
		if now.Sub(p.used) > keptIdle {
			delete(t.mu.by, session)
		}
	}
	t.mu.sweep = max(firstSweep, 2*len(t.mu.by))
}

// transactionHolder returns the router that a command has to go to for its transaction's sake, and whether another will do where that one is gone.
func (b *Backend) transactionHolder(name string, body bson.Document) (holder address.Address, moves, ok bool) {
	if !b.transactions.any.Load() {
		return "", false, false
	}
	s, ok := statementOf(name, body)
	if !ok {
		return "", false, false
	}
	holder, ok = b.transactions.holder(s)
	return holder, s.moves, ok
}

// pinTransaction keeps a command's transaction on the router that the command is about to go to.
func (b *Backend) pinTransaction(name string, body bson.Document, to host, address address.Address) {
	if to.Kind != description.TopologyKindSharded {
		return
	}
	if s, ok := statementOf(name, body); ok {
		b.transactions.note(s, address, time.Now())
	}
}
