package passthrough

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/backend/embedded"
	"oxbow/internal/command"
)

// keeper is a deployment with documents, a cluster time and sessions: an embedded engine behind a server that answers as MongoDB does where time and
// transactions are concerned. What a server would refuse it refuses: a time it has not heard of, a statement of a transaction that it has not, a read
// concern in the middle of one. A transaction's writes are seen at once, and stay when it is aborted: nothing here isolates.
type keeper struct {
	uri    string
	engine *embedded.Backend
	stop   func()

	mu     sync.Mutex
	clock  uint32 // of the cluster time; its counter is always 1
	sent   []bson.M
	open   map[string]int64 // transactions that are open, by session
	done   map[string]int64 // the latest that was committed
	ended  []string         // how transactions ended
	busy   map[string]bool  // sessions with a statement of a transaction under way
	wrong  []string         // what no gateway may send
	script func(bson.M) (bson.D, bool)
}

// newKeeper serves a deployment whose cluster time begins at a number.
func newKeeper(t *testing.T, clock uint32) *keeper {
	t.Helper()
	e, err := embedded.Open(embedded.Options{Store: embedded.Store{Dir: "kept", FS: vfs.NewMem(), CacheBytes: 8 << 20, MemTableBytes: 4 << 20}})
	must(t, "open an engine", err)
	k := &keeper{engine: e, clock: clock, open: map[string]int64{}, done: map[string]int64{}, busy: map[string]bool{}}
	d := newServed(t, k.answer)
	k.uri = d.uri
	for _, name := range []string{"find", "getMore", "killCursors", "aggregate", "count", "distinct", "insert", "update", "delete", "findAndModify", "commitTransaction", "abortTransaction"} {
		d.table.Register(name, command.Entry{Handler: k.answer, InTransactions: true, Reads: true, EndsTransaction: strings.HasSuffix(name, "Transaction")})
	}
	k.stop = d.serve(t)
	t.Cleanup(func() {
		k.stop()
		must(t, "close the engine", e.Close())
		for _, wrong := range k.wrong {
			t.Errorf("sent to a deployment: %s", wrong)
		}
	})
	return k
}

func (k *keeper) answer(ctx context.Context, req *command.Request, reply *command.Reply) error {
	var cmd bson.M
	if err := bson.Unmarshal(req.Body, &cmd); err != nil {
		return err
	}
	cmd["?"] = req.Name
	session, refused := k.begin(cmd)
	defer k.end(session)
	doc := refused
	if doc == nil {
		doc = k.run(ctx, req, cmd)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, fails := get(doc, "code").(int32); fails && session != "" {
		delete(k.open, session) // an error ends a transaction
	}
	at := bson.Timestamp{T: k.clock, I: 1}
	doc = append(doc, bson.E{Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: at},
		{Key: "signature", Value: bson.D{{Key: "hash", Value: bson.Binary{Data: make([]byte, 20)}}, {Key: "keyId", Value: int64(0)}}}}},
		bson.E{Key: "operationTime", Value: at})
	if session != "" {
		doc = append(doc, bson.E{Key: "recoveryToken", Value: bson.D{{Key: "at", Value: int32(k.clock)}}})
	}
	var err error
	reply.Document, err = bson.Marshal(doc)
	return err
}

func get(doc bson.D, key string) any {
	for _, e := range doc {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

func failure(code int32, message string, labels ...string) bson.D {
	doc := bson.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: message}, {Key: "code", Value: code}}
	if labels != nil {
		doc = append(doc, bson.E{Key: "errorLabels", Value: labels})
	}
	return doc
}

// begin notes a command and checks what it says of time and of its transaction, whose session it returns.
func (k *keeper) begin(cmd bson.M) (session string, refused bson.D) {
	k.mu.Lock()
	defer k.mu.Unlock()
	name := cmd["?"].(string)
	if cmd["$db"] != "oxbow" {
		k.sent = append(k.sent, cmd)
	}
	if gossip, ok := cmd["$clusterTime"].(bson.D); ok {
		k.clock = max(k.clock, get(gossip, "clusterTime").(bson.Timestamp).T)
	}
	concern, hasConcern := cmd["readConcern"].(bson.D)
	if after, ok := get(concern, "afterClusterTime").(bson.Timestamp); ok && after.T > k.clock {
		k.wrong = append(k.wrong, fmt.Sprintf("%s after %d, at %d", name, after.T, k.clock))
		return "", failure(72, "readConcern afterClusterTime value must not be greater than the current clusterTime")
	}
	switch name {
	case "insert", "update", "delete", "findAndModify", "commitTransaction":
		if cmd["$db"] != "oxbow" { // the gateway's own writes come when they come
			k.clock++
		}
	}
	if cmd["autocommit"] != false {
		return "", nil
	}
	session, number := fmt.Sprint(cmd["lsid"]), cmd["txnNumber"].(int64)
	if k.busy[session] {
		k.wrong = append(k.wrong, name+" beside another statement of its transaction")
	}
	k.busy[session] = true
	known, open := k.open[session]
	_, begins := cmd["startTransaction"]
	switch {
	case begins && open && known == number:
		k.wrong = append(k.wrong, name+" begins a transaction again")
		return session, failure(117, "the transaction is in progress")
	case begins:
		k.open[session] = number
	case name == "commitTransaction" && k.done[session] == number:
		return session, bson.D{{Key: "ok", Value: 1.0}}
	case !open || known != number:
		return session, failure(251, "the transaction is not in progress", "TransientTransactionError")
	case hasConcern:
		k.wrong = append(k.wrong, name+" has a read concern in the middle of a transaction")
		return session, failure(72, "Only the first command in a transaction may specify a readConcern")
	}
	if name == "commitTransaction" || name == "abortTransaction" {
		k.ended = append(k.ended, fmt.Sprintf("%s %v", name, cmd["recoveryToken"]))
		delete(k.open, session)
		if name == "commitTransaction" {
			k.done[session] = number
		}
		return session, bson.D{{Key: "ok", Value: 1.0}}
	}
	return session, nil
}

func (k *keeper) end(session string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.busy, session)
}

// run answers as the script says, or as the engine does, which has no transactions.
func (k *keeper) run(ctx context.Context, req *command.Request, cmd bson.M) bson.D {
	k.mu.Lock()
	script := k.script
	k.mu.Unlock()
	if script != nil {
		if doc, ok := script(cmd); ok {
			return doc
		}
	}
	var body bson.D
	if bson.Unmarshal(req.Body, &body) != nil {
		return failure(22, "malformed")
	}
	if cmd["autocommit"] == false {
		body = slices.DeleteFunc(body, func(e bson.E) bool {
			return slices.Contains([]string{"txnNumber", "autocommit", "startTransaction", "readConcern"}, e.Key)
		})
	}
	raw, err := bson.Marshal(body)
	if err != nil {
		return failure(22, "malformed")
	}
	got, err := k.engine.Run(ctx, &backend.Request{Body: raw, Sequences: req.Sequences})
	if err != nil {
		return failure(1, err.Error())
	}
	var doc bson.D
	if bson.Unmarshal(got, &doc) != nil {
		return failure(22, "malformed")
	}
	return doc
}

// answers makes the deployment answer commands as a script says, those for which it says true.
func (k *keeper) answers(script func(bson.M) (bson.D, bool)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.script = script
}

// time is the deployment's cluster time.
func (k *keeper) time() uint32 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.clock
}

// pass moves the cluster time on, as other clients' writes do.
func (k *keeper) pass(by uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clock += by
}

// take returns the commands of clients since the last call.
func (k *keeper) take() []bson.M {
	k.mu.Lock()
	defer k.mu.Unlock()
	sent := slices.DeleteFunc(k.sent, func(cmd bson.M) bool {
		return !slices.Contains([]string{"find", "getMore", "aggregate", "count", "distinct", "insert", "update", "delete", "findAndModify", "commitTransaction", "abortTransaction"},
			cmd["?"].(string))
	})
	k.sent = nil
	return sent
}

// endings tells how transactions ended since the last call.
func (k *keeper) endings() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	ended := strings.Join(k.ended, "\n")
	k.ended = nil
	return ended
}

// engineHas returns the collections of the database laid in which a document lies.
func (k *keeper) engineHas(t *testing.T, id any) []string {
	t.Helper()
	var in []string
	for slot := range 4 {
		name := fmt.Sprintf("c_%d", slot)
		body, err := bson.Marshal(bson.D{{Key: "count", Value: name}, {Key: "query", Value: bson.D{{Key: "_id", Value: id}}}, {Key: "$db", Value: "laid"}})
		must(t, "encode", err)
		raw, err := k.engine.Run(t.Context(), &backend.Request{Body: body})
		must(t, "count", err)
		var got bson.M
		must(t, "decode", bson.Unmarshal(raw, &got))
		if got["n"] == int32(1) {
			in = append(in, name)
		}
	}
	return in
}
