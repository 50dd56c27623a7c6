package failures

import (
	"net"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/wire"
)

// conn is one connection to a member.
type conn struct {
	member *member
	nc     net.Conn
	id     int64
	app    string // the application name of its handshake, which tells gateways apart; guarded by the set's lock
}

// accept serves connections until the listener is closed.
func (m *member) accept() {
	for {
		nc, err := m.listener.Accept()
		if err != nil {
			return
		}
		m.set.mu.Lock()
		if !m.up || m.refusing {
			nc.Close()
		} else {
			m.lastConn++
			c := &conn{member: m, nc: nc, id: m.lastConn}
			m.conns[c] = true
			go c.serve()
		}
		m.set.mu.Unlock()
	}
}

// serve answers one command after the other until the connection breaks.
func (c *conn) serve() {
	defer func() {
		c.nc.Close()
		c.member.set.mu.Lock()
		delete(c.member.conns, c)
		c.member.set.mu.Unlock()
	}()
	in := wire.NewReader(c.nc)
	for {
		msg, err := in.Next()
		if err != nil {
			return
		}
		if err := msg.Parse(); err != nil {
			return
		}
		if !c.answer(msg) {
			return
		}
		msg.Release()
	}
}

// answer runs one message's command. False: the connection breaks.
func (c *conn) answer(msg *wire.Message) bool {
	cmd := commandOf(msg)
	if cmd.name == "hello" || cmd.name == "isMaster" || cmd.name == "ismaster" {
		return c.answerHello(msg, cmd)
	}
	reply, ok := c.member.serve(c, cmd)
	return ok && c.write(msg, msg.Header.RequestID, reply, 0)
}

// commandOf copies a message's command.
func commandOf(msg *wire.Message) *command {
	cmd := &command{body: append(bson.Document(nil), msg.Body...)}
	cmd.name, _, _ = bson.First(cmd.body)
	if cmd.name == "findandmodify" {
		cmd.name = "findAndModify"
	}
	db, _ := bson.Get(cmd.body, "$db")
	cmd.database, _ = db.StringValueOK()
	for _, s := range msg.Sequences {
		own := backend.Sequence{Name: s.Name}
		for _, doc := range s.Documents {
			own.Documents = append(own.Documents, append(bson.Document(nil), doc...))
		}
		cmd.sequences = append(cmd.sequences, own)
	}
	return cmd
}

func (c *conn) write(msg *wire.Message, responseTo int32, doc bson.Document, flags wire.Flags) bool {
	var out []byte
	if msg.Header.OpCode == wire.OpQuery {
		out = wire.AppendReply(nil, 1, responseTo, doc, false)
	} else {
		out = wire.FinishReply(append(make([]byte, wire.ReplyRoom), doc...), 1, responseTo, flags)
	}
	_, err := c.nc.Write(out)
	return err == nil
}

// answerHello answers at once, or as soon as what it tells has changed, and goes on to tell where the client takes a stream.
func (c *conn) answerHello(msg *wire.Message, cmd *command) bool {
	m := c.member
	known, await := int64(-1), time.Duration(0)
	if v, ok := bson.Get(cmd.body, "maxAwaitTimeMS"); ok {
		ms, _ := v.AsInt64OK()
		await = time.Duration(ms) * time.Millisecond
	}
	if v, ok := bson.Get(cmd.body, "topologyVersion"); ok {
		counter, _ := bson.Get(v.Data, "counter")
		known, _ = counter.AsInt64OK()
	}
	streams := msg.Flags&wire.ExhaustAllowed != 0 && await > 0
	for {
		doc, version, ok := m.hello(c, cmd, known, await)
		if !ok {
			return false
		}
		var flags wire.Flags
		if streams {
			flags = wire.MoreToCome
		}
		if !c.write(msg, msg.Header.RequestID, doc, flags) || !streams {
			return !streams
		}
		known = version
	}
}

// hello waits while the client knows all there is, and answers.
func (m *member) hello(c *conn, cmd *command, known int64, await time.Duration) (bson.Document, int64, bool) {
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	if app := appName(cmd.body); app != "" {
		c.app = app
	}
	life, until := m.life, time.Now().Add(await)
	for m.life == life && (m.stalled || m.version == known && time.Now().Before(until)) {
		m.set.changed.Wait()
	}
	if m.life != life || m.set.severed[c.app] || m.refusing {
		return nil, 0, false
	}
	return m.helloLocked(c.id), m.version, true
}

func appName(body bson.Document) string {
	client, _ := bson.Get(body, "client")
	application, _ := bson.Get(client.Data, "application")
	name, _ := bson.Get(application.Data, "name")
	s, _ := name.StringValueOK()
	return s
}

// serve answers a command that is no handshake, with what was asked to go wrong. False: the connection breaks.
func (m *member) serve(c *conn, cmd *command) (bson.Document, bool) {
	f, slow, ok := m.takeFault(c, cmd)
	if !ok {
		return nil, false
	}
	if m.set.before != nil && isData(cmd) {
		f = m.set.before(c, cmd)
	}
	time.Sleep(slow)
	switch f.kind {
	case dropBefore:
		return nil, false
	case refuseBefore:
		return m.refuseWith(f.code, cmd), true
	}
	first, last := -1, -1
	if f.kind == failStatement {
		first, last = cmd.cut()
	}
	reply, ok := m.answer(c, cmd)
	if m.set.after != nil && isData(cmd) {
		m.set.after(c, cmd)
	}
	failed := backend.Check(reply) != nil
	switch {
	case !ok || f.kind == dropAfter:
		return nil, false
	case failed || !writes[cmd.name]:
	case f.kind == refuseAfter:
		return m.refuseWith(f.code, cmd), true
	case f.kind == failConcern:
		m.change(m.turnedLocked)
		return m.concernError(reply, f.code, cmd), true
	case first >= 0:
		return m.statementErrors(reply, f.code, first, last), true
	}
	return reply, true
}

// answer runs a command: those of every server, or those on data.
func (m *member) answer(c *conn, cmd *command) (bson.Document, bool) {
	switch cmd.name {
	case "endSessions", "killSessions", "refreshSessions", "killAllSessions":
		return marshal(okay), true
	case "currentOp", "killOp":
		return m.operations(c, cmd), true
	}
	return m.run(cmd)
}

// takeFault waits while the member is stalled, and returns what is to go wrong with the command.
func (m *member) takeFault(c *conn, cmd *command) (f fault, slow time.Duration, ok bool) {
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	life := m.life
	for m.stalled && m.life == life {
		m.set.changed.Wait()
	}
	if m.life != life || m.set.severed[c.app] {
		return f, 0, false
	}
	if isData(cmd) && len(m.faults) > 0 {
		f, m.faults = m.faults[0], m.faults[1:]
	}
	return f, m.slow, true
}

// isData reports whether a command is about the test's own data.
func isData(cmd *command) bool {
	return cmd.database == database && (writes[cmd.name] || cmd.name == "find" || cmd.name == "count")
}

// fault is one thing that goes wrong with one command.
type fault struct {
	kind faultKind
	code mongoerr.Code
}

type faultKind int

const (
	none          faultKind = iota
	dropBefore              // the connection breaks and the command is not run
	dropAfter               // it breaks when the command has been run
	refuseBefore            // an error, and the command is not run
	refuseAfter             // an error, and it was run
	failConcern             // a write concern error
	failStatement           // the error of a statement in the middle of a write, which is done up to it
)

func (k faultKind) String() string {
	return [...]string{"none", "drop before", "drop after", "refuse before", "refuse after", "fail concern", "fail statement"}[k]
}

// refuseWith answers with a state change, in the words of old servers. The state has changed, and has changed back at once.
func (m *member) refuseWith(code mongoerr.Code, cmd *command) (reply bson.Document) {
	m.change(func() {
		m.turnedLocked()
		reply = m.errorLocked(code, "not master", cmd)
	})
	return reply
}

// cut leaves a write its statements up to some in the middle, and returns the indexes of those that have an error then, or -1.
func (cmd *command) cut() (first, last int) {
	if len(cmd.sequences) != 1 || len(cmd.sequences[0].Documents) < 2 {
		return -1, -1
	}
	docs := &cmd.sequences[0].Documents
	first, last = len(*docs)/2, len(*docs)/2
	if ordered, ok := bson.Get(cmd.body, "ordered"); ok && !ordered.Boolean() {
		last = len(*docs) - 1
	}
	*docs = (*docs)[:first]
	if ids, ok := bson.Get(cmd.body, "stmtIds"); ok {
		list, it := bsoncore.NewArrayBuilder(), bson.Elements(ids.Data)
		for range first {
			it.Next()
			list.AppendInt32(it.Value().Int32())
		}
		cmd.body = appended(without(cmd.body, "stmtIds"), bsoncore.AppendArrayElement(nil, "stmtIds", list.Build()))
	}
	return first, last
}
