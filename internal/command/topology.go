package command

import (
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
)

// topology is the version of what hello tells: a process id and a counter that moves when the answer changes: when the servers behind can do
// something else than before, and when the server begins to stop.
type topology struct {
	processID bson.ObjectID
	counter   *atomic.Int64
	stop      func()
	stopping  chan struct{} // closed by drain
	told      *atomic.Pointer[backend.Servers]
}

func newTopology() topology {
	t := topology{processID: bson.NewObjectID(), counter: new(atomic.Int64), stopping: make(chan struct{}), told: new(atomic.Pointer[backend.Servers])}
	t.stop = sync.OnceFunc(func() {
		t.counter.Add(1)
		close(t.stopping)
	})
	return t
}

// tell notes what a client is told of the servers. Those that wait for a change learn of it when their time is over.
func (t *topology) tell(s backend.Servers) {
	before := t.told.Load()
	if before != nil && *before == s {
		return
	}
	if t.told.CompareAndSwap(before, &s) && before != nil {
		t.counter.Add(1)
	}
}

func (t *topology) drain() { t.stop() }

func (t *topology) draining() bool {
	select {
	case <-t.stopping:
		return true
	default:
		return false
	}
}
