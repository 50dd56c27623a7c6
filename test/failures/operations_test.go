package failures

import (
	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
)

// hold keeps a command running, as currentOp shows it, until it is killed or let go. True: it was killed.
func (s *set) hold(c *conn, cmd *command) (killed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lets {
		return false
	}
	s.lastOp++
	id, op := s.lastOp, &heldOp{connection: c.id, command: cmd.body}
	s.held[id] = op
	s.changed.Broadcast()
	for !op.killed && !s.lets {
		s.changed.Wait()
	}
	delete(s.held, id)
	s.changed.Broadcast()
	return op.killed
}

// letAll lets the commands held go, and those to come.
func (s *set) letAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lets = true
	s.changed.Broadcast()
}

// awaitHeld waits until so many commands are held.
func (s *set) awaitHeld(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.held) != n {
		s.changed.Wait()
	}
}

// operations answers currentOp and killOp about the commands held.
func (m *member) operations(_ *conn, cmd *command) bson.Document {
	s := m.set
	s.mu.Lock()
	defer s.mu.Unlock()
	if cmd.name == "killOp" {
		v, _ := bson.Get(cmd.body, "op")
		id, _ := v.AsInt64OK()
		if op := s.held[int32(id)]; op != nil {
			op.killed = true
			s.changed.Broadcast()
		}
		return marshal(okay)
	}
	inprog := driver.A{}
	for id, op := range s.held {
		if want, ok := bson.Get(cmd.body, "connectionId"); ok {
			if n, _ := want.AsInt64OK(); n != op.connection {
				continue
			}
		}
		inprog = append(inprog, driver.D{{Key: "opid", Value: id}, {Key: "connectionId", Value: op.connection}, {Key: "command", Value: driver.Raw(op.command)}})
	}
	return marshal(driver.D{{Key: "inprog", Value: inprog}, {Key: "ok", Value: 1.0}})
}
