package command

import (
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// topology is the version of what hello tells: a process id and a counter that moves when the answer would change. It
// moves once, when the server begins to stop.
type topology struct {
	processID bson.ObjectID
	counter   *atomic.Int64
	stop      func()
	stopping  chan struct{} // closed by drain
}

func newTopology() topology {
	t := topology{processID: bson.NewObjectID(), counter: new(atomic.Int64), stopping: make(chan struct{})}
	t.stop = sync.OnceFunc(func() {
		t.counter.Add(1)
		close(t.stopping)
	})
	return t
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
