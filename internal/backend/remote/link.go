package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"oxbow/internal/backend"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/mnet"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// link is a connection of a driver's pool, on which commands go out and replies come in without the driver, which costs two goroutines and three system
// calls more for each: the driver dials it through the dialer, shakes hands, logs in and lends it out. One command uses it at a time.
type link struct {
	net.Conn
	dialer *dialer
	name   linkName

	mu struct {
		sync.Mutex
		ctx   context.Context // of the command under way; nil: none
		ended bool            // so its reads and writes end
	}
	in   []byte      // what was read last, before it is known how long the message is
	lent atomic.Bool // it has served a command, so it's no monitor's

	asked, compressed bool // whether messages go out compressed, once that was asked
}

// linkName tells links from each other. To the driver it is the local address, which it gives back.
type linkName string

// Network implements net.Addr.
func (*linkName) Network() string { return "link" }

// String implements net.Addr.
func (n *linkName) String() string { return string(*n) }

// LocalAddr is the link's name.
func (l *link) LocalAddr() net.Addr { return &l.name }

// Close implements net.Conn.
func (l *link) Close() error {
	l.dialer.forget(l)
	return l.Conn.Close()
}

// readAhead is the buffer that a link reads the beginning of a message into, in bytes: most replies fit.
const readAhead = 4 << 10

// answerGrace is how much longer than the command's time its answer is waited for. The server has the same limit, and its answer leaves a connection
// that can be used again.
const answerGrace = 500 * time.Millisecond

// begin makes the end of ctx end the reads and writes of a command. finish has to be called when the command is over.
func (l *link) begin(ctx context.Context) {
	l.mu.Lock()
	l.mu.ctx = ctx
	l.mu.Unlock()
	l.dialer.lookout.rouse()
}

// look ends the reads and writes of a command whose context has ended. It reports whether there is a command.
func (l *link) look() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx := l.mu.ctx
	if ctx == nil || l.mu.ended || ctx.Err() == nil {
		return ctx != nil
	}
	until := time.Unix(1, 0)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		until = time.Now().Add(answerGrace)
	}
	l.mu.ended = true
	l.Conn.SetDeadline(until) // fails on a closed link only, whose reads and writes end anyway
	return true
}

// finish undoes begin. It reports whether another command can use the link, if this one has read its whole reply.
func (l *link) finish() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	ended := l.mu.ended
	l.mu.ctx, l.mu.ended = nil, false
	return !ended || l.Conn.SetDeadline(time.Time{}) == nil
}

// send writes a command as one OP_MSG.
func (l *link) send(req *backend.Request, id int32) error {
	buf := takeBuffer()
	defer giveBuffer(buf)
	p := pieces{to: l.Conn, buf: (*buf)[:0]}
	p.message(req, id)
	p.flush()
	*buf = p.buf
	return p.err
}

// compresses reports whether the handshake agreed on compression, which the driver tells only by doing it.
func (l *link) compresses(conn *mnet.Connection) bool {
	if !l.asked {
		var p pieces
		p.message(&backend.Request{Body: pingCommand}, 0)
		out, err := conn.CompressWireMessage(p.buf, nil)
		if err != nil {
			return false
		}
		_, _, _, op, _, _ := wiremessage.ReadHeader(out)
		l.asked, l.compressed = true, op == wiremessage.OpCompressed
	}
	return l.compressed
}

// sendCompressed is send with the driver's compression.
func (l *link) sendCompressed(conn *mnet.Connection, req *backend.Request, id int32) error {
	whole := bytes.NewBuffer(make([]byte, 0, messageSize(req)))
	p := pieces{to: whole}
	p.message(req, id)
	p.flush()
	message, err := conn.CompressWireMessage(whole.Bytes(), nil)
	if err != nil {
		return fmt.Errorf("compress the command: %w", err)
	}
	_, err = l.Conn.Write(message)
	return err
}

// receive reads the next message. It belongs to the caller.
func (l *link) receive() ([]byte, error) {
	if l.in == nil {
		l.in = make([]byte, readAhead)
	}
	have, err := io.ReadAtLeast(l.Conn, l.in, headerSize)
	if err != nil {
		return nil, err
	}
	length := int(int32(binary.LittleEndian.Uint32(l.in)))
	if length < headerSize || length > maxMessage || have > length {
		return nil, fmt.Errorf("%w: %d bytes of a message of %d", errMalformed, have, length)
	}
	message := make([]byte, length)
	copy(message, l.in[:have])
	_, err = io.ReadFull(l.Conn, message[have:])
	return message, err
}
