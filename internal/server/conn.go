package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/command"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
	"oxbow/internal/wire"
)

// conn is one client's connection, used by its own goroutine but for busy and nc.
type conn struct {
	server *Server
	nc     net.Conn
	stream stream
	in     *wire.Reader
	client command.Conn

	messages memory.Account // of the message being read or answered
	replies  memory.Account // of the reply being made or sent

	busy atomic.Bool // between the arrival of a message and the last byte of its reply

	// The present command's, kept here so that they cost no allocation each.
	request   command.Request
	reply     command.Reply
	sequences []backend.Sequence
	lastReply int32 // the id of the last reply

	from    netip.Prefix // where the client is, as limits see it
	loginBy time.Time    // when reading ends if nobody has logged in; zero: never
}

func newConn(s *Server, nc net.Conn, id int64) *conn {
	c := &conn{server: s, nc: nc}
	c.stream = stream{nc: nc, stall: s.options.StallTimeout, counters: s.counters}
	c.messages, c.replies = s.options.Memory.Account(memory.Messages), s.options.Memory.Account(memory.Replies)
	c.in = wire.NewReader(&c.stream)
	c.in.Limit(c.awaitRoom)
	c.client.ID = id
	c.client.Remote = remoteOf(nc)
	c.client.Local = nc.LocalAddr().String()
	c.client.Opened = time.Now()
	return c
}

func (c *conn) isBusy() bool { return c.busy.Load() }

// run serves the connection until it ends.
func (c *conn) run() {
	defer c.server.remove(c)
	defer c.nc.Close()
	defer func() {
		if p := recover(); p != nil {
			c.server.counters.Panics.Add(1)
			c.server.log.Error("connection panicked", "connection", c.client.ID, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	if err := c.shakeHands(); err != nil {
		c.ended(err)
		return
	}
	for {
		if err := c.await(); err != nil {
			c.ended(err)
			return
		}
		c.busy.Store(true)
		err := c.next()
		c.busy.Store(false)
		if err != nil {
			c.ended(err)
			return
		}
	}
}

// await waits for the next message, but not for ever while the client should log in and has not.
func (c *conn) await() error {
	by := c.server.table.LoginBy(&c.client)
	if !by.IsZero() || !c.loginBy.IsZero() {
		if err := c.nc.SetReadDeadline(by); err != nil {
			return err
		}
	}
	c.loginBy = by
	err := c.in.Wait()
	if !by.IsZero() && errors.Is(err, os.ErrDeadlineExceeded) {
		return errNoLogin
	}
	return err
}

// errNoLogin ends a connection whose client has neither logged in nor said hello for too long.
var errNoLogin = errors.New("nobody logged in")

// ended logs why a connection is over, unless the client just left.
func (c *conn) ended(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || isReset(err) {
		return
	}
	if errors.Is(err, errNoLogin) {
		c.server.table.Refuse(command.LimitLogin, "connection", c.client.ID, "remote", c.client.Remote)
		return
	}
	c.server.counters.BadMessages.Add(1)
	c.server.log.Warn("connection closed", "connection", c.client.ID, "remote", c.client.Remote, "error", err)
}

// errNoRoom ends a connection whose message found no memory in time.
var errNoRoom = errors.New("no memory for a message became free in time")

// awaitRoom waits until the message being read may take n bytes more. The client waits with it, since nothing is read meanwhile.
func (c *conn) awaitRoom(n int64) error {
	if c.messages.Try(n) {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(c.server.base, c.server.options.StallTimeout, errNoRoom)
	defer cancel()
	return c.messages.Await(ctx, n)
}

// next reads one message and answers it.
func (c *conn) next() error {
	defer c.messages.Close()
	if !c.in.Complete() {
		c.stream.begin(c.loginBy)
		defer c.stream.end()
	}
	m, err := c.in.Next()
	if err != nil {
		return err
	}
	defer m.Release()
	c.stream.end()
	c.server.counters.BytesIn.Add(int64(m.Header.Length))
	return c.answer(m)
}

// answer runs the message's command and writes the reply, or the replies where the client takes a stream of them.
func (c *conn) answer(m *wire.Message) error {
	if err := m.Parse(); err != nil {
		return c.answerBad(m, err)
	}
	body, err := commandBody(m)
	if err != nil {
		return c.answerBad(m, err)
	}
	responseTo := m.Header.RequestID
	for unasked := false; body != nil; unasked = true {
		if body, err = c.answerOnce(m, body, responseTo, unasked); err != nil {
			return err
		}
		responseTo = c.lastReply
	}
	return nil
}

// answerOnce runs the command once. It returns the command that is to run next, unasked, or nil.
func (c *conn) answerOnce(m *wire.Message, body bson.Document, responseTo int32, unasked bool) (next bson.Document, err error) {
	buf := takeBuffer()
	defer giveBuffer(buf)
	c.request = command.Request{Body: body, Sequences: c.sequencesOf(m), Conn: &c.client, Exhaust: m.Flags&wire.ExhaustAllowed != 0, Unasked: unasked}
	c.reply = command.Reply{Elements: append(*buf, make([]byte, wire.ReplyRoom)...), Memory: &c.replies}
	defer c.forget(buf)
	c.server.table.Run(c.server.base, &c.request, &c.reply)
	if m.Flags&wire.MoreToCome != 0 {
		return nil, nil
	}
	if c.reply.Again && m.Header.OpCode == wire.OpMsg {
		next = body
		if c.reply.Next != nil {
			next = c.reply.Next
		}
	}
	return next, c.write(m, responseTo, next != nil)
}

// forget keeps the reply's buffer for the next one and drops everything else: an idle connection must not hold on to a message.
func (c *conn) forget(buf *[]byte) {
	c.replies.Close()
	*buf = c.reply.Elements[:0]
	c.request, c.reply = command.Request{}, command.Reply{}
	clear(c.sequences[:cap(c.sequences)])
}

// sequencesOf gives the message's sequences as the backends know them.
func (c *conn) sequencesOf(m *wire.Message) []backend.Sequence {
	c.sequences = c.sequences[:0]
	for _, s := range m.Sequences {
		c.sequences = append(c.sequences, backend.Sequence(s))
	}
	return c.sequences
}

// handshakes are the commands that may come as OP_QUERY.
var handshakes = map[string]bool{"hello": true, "isMaster": true, "ismaster": true}

// commandBody returns the command of a message. That of an OP_QUERY gets the $db that the namespace names.
func commandBody(m *wire.Message) (bson.Document, error) {
	if m.Header.OpCode != wire.OpQuery {
		return m.Body, nil
	}
	database, isCommand := strings.CutSuffix(m.Namespace, ".$cmd")
	name, _, _ := bson.First(m.Body)
	if !isCommand {
		name = "find"
	}
	if !isCommand || !handshakes[name] {
		return nil, mongoerr.New(mongoerr.UnsupportedOpQueryCommand, "Unsupported OP_QUERY command: %s. The client driver may require an "+
			"upgrade. For more details see https://dochub.mongodb.org/core/legacy-opcode-removal", name)
	}
	if _, ok := bson.Get(m.Body, "$db"); ok {
		return m.Body, nil
	}
	at, dst := bsoncore.AppendDocumentStart(make([]byte, 0, len(m.Body)+32))
	it := bson.Elements(m.Body)
	for it.Next() {
		dst = append(dst, it.Raw()...)
	}
	dst = bsoncore.AppendStringElement(dst, "$db", database)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst, nil
}

// answerBad answers a message whose content is wrong and goes on, or gives the error back where the bytes can't be trusted.
func (c *conn) answerBad(m *wire.Message, err error) error {
	var answer *mongoerr.Error
	if !errors.As(err, &answer) {
		return err
	}
	c.server.counters.UserErrors.Add(1)
	if m.Flags&wire.MoreToCome != 0 {
		return nil
	}
	buf := takeBuffer()
	defer giveBuffer(buf)
	c.reply = command.Reply{Elements: command.ErrorReply(append(*buf, make([]byte, wire.ReplyRoom)...), answer)}
	defer c.forget(buf)
	return c.write(m, m.Header.RequestID, false)
}

// refuse answers the first message with an error.
func (c *conn) refuse(err *mongoerr.Error) {
	defer c.messages.Close()
	m, readErr := c.in.Next()
	if readErr != nil {
		return
	}
	defer m.Release()
	if m.Parse() != nil {
		return
	}
	c.answerBad(m, err)
}
