package overhead

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/wire"
)

// client is a connection with its prepared message.
type client struct {
	net.Conn
	call  *call
	reply []byte
}

func dial(tb testing.TB, address string) *client {
	tb.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { nc.Close() })
	return &client{Conn: nc, reply: make([]byte, 1<<10)}
}

// roundTrip sends a message and reads the reply, whose document it returns.
func (c *client) roundTrip(message []byte) (bson.Document, error) {
	if _, err := c.Write(message); err != nil {
		return nil, err
	}
	have, length := 0, wire.HeaderSize
	for have < length {
		n, err := io.ReadAtLeast(c.Conn, c.reply[have:], length-have)
		if err != nil {
			return nil, err
		}
		have += n
		length = int(binary.LittleEndian.Uint32(c.reply))
		if grown := length - len(c.reply); grown > 0 {
			c.reply = append(c.reply, make([]byte, grown)...)
		}
	}
	return c.reply[wire.ReplyRoom:length], nil
}

// once makes the client's next call.
func (c *client) once() error {
	c.call.vary()
	reply, err := c.roundTrip(c.call.message)
	if err != nil {
		return err
	}
	if err := backend.Check(reply); err != nil {
		return err
	}
	if _, failed := bson.Get(reply, "writeErrors"); failed || len(reply) < c.call.least {
		return fmt.Errorf("the reply is %v", reply)
	}
	return nil
}

// message frames a command with an optional sequence of documents, and returns the copies in it of the body and of the documents.
func message(body bson.Document, name string, docs []bson.Document) (m []byte, in bson.Document, of []bson.Document) {
	m = append(make([]byte, wire.ReplyRoom), body...)
	binary.LittleEndian.PutUint32(m[12:], uint32(wire.OpMsg))
	at := len(m)
	if name != "" {
		m = append(append(append(m, 1, 0, 0, 0, 0), name...), 0)
		for _, doc := range docs {
			m = append(m, doc...)
		}
		binary.LittleEndian.PutUint32(m[at+1:], uint32(len(m)-at-1))
	}
	binary.LittleEndian.PutUint32(m, uint32(len(m)))
	end := len(m)
	for i := len(docs) - 1; i >= 0; i-- {
		end -= len(docs[i])
		of = append(of, m[end:end+len(docs[i])])
	}
	return m, m[wire.ReplyRoom : wire.ReplyRoom+len(body)], of
}

func marshal(doc driver.D) bson.Document {
	raw, err := driver.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return raw
}
