package passthrough

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"oxbow"
)

// The flags of an OP_MSG (https://www.mongodb.com/docs/manual/reference/mongodb-wire-protocol/#flag-bits).
const (
	moreToCome     = 1 << 1
	exhaustAllowed = 1 << 16
)

// raw is a connection on which messages are written and read byte by byte: the official driver takes no streams of batches.
type raw struct {
	net.Conn
	last int32 // the id of the last request
}

func (c *raw) send(t *testing.T, flags uint32, cmd bson.D) {
	t.Helper()
	body, err := bson.Marshal(cmd)
	must(t, "encode", err)
	c.last++
	msg := binary.LittleEndian.AppendUint32(nil, uint32(21+len(body)))
	for _, n := range []uint32{uint32(c.last), 0, 2013, flags} {
		msg = binary.LittleEndian.AppendUint32(msg, n)
	}
	_, err = c.Write(append(append(msg, 0), body...))
	must(t, "write", err)
}

func (c *raw) receive(t *testing.T) (flags uint32, id, responseTo int32, got bson.M) {
	t.Helper()
	head := make([]byte, 21)
	_, err := io.ReadFull(c, head)
	must(t, "read", err)
	body := make([]byte, binary.LittleEndian.Uint32(head)-21)
	_, err = io.ReadFull(c, body)
	must(t, "read", err)
	must(t, "decode", bson.Unmarshal(body, &got))
	return binary.LittleEndian.Uint32(head[16:]), int32(binary.LittleEndian.Uint32(head[4:])), int32(binary.LittleEndian.Uint32(head[8:])), got
}

// TestExhaust: a client that takes a stream of batches gets one without asking again, of a plain collection on a deployment and of one with a layout.
func TestExhaust(t *testing.T) {
	k := newKeeper(t, 100)
	g, err := oxbow.Open(t.Context(), oxbow.Options{Listen: "127.0.0.1:0", Config: []byte(alone(k, ""))})
	must(t, "open", err)
	defer func() { must(t, "close", g.Close(t.Context())) }()
	nc, err := net.Dial("tcp", g.Addr().String())
	must(t, "connect", err)
	defer nc.Close()
	c := &raw{Conn: nc}
	for _, database := range []string{"plain", "laid"} {
		c.send(t, 0, in(database, bson.D{{Key: "insert", Value: "c"}, documents(20)}))
		c.receive(t)
		c.send(t, 0, in(database, bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 3}}))
		_, _, _, got := c.receive(t)
		id, seen, _ := cursorOf(t, got)
		c.send(t, exhaustAllowed, in(database, bson.D{{Key: "getMore", Value: id}, {Key: "collection", Value: "c"}, {Key: "batchSize", Value: 4}}))
		batches, answers := 0, c.last
		for flags := uint32(moreToCome); flags&moreToCome != 0; batches++ {
			var reply, to int32
			flags, reply, to, got = c.receive(t)
			if to != answers {
				t.Fatalf("%s: batch %d answers message %d, not %d", database, batches, to, answers)
			}
			answers = reply
			left, ids, _ := cursorOf(t, got)
			seen = append(seen, ids...)
			if (left == int64(0)) != (flags&moreToCome == 0) {
				t.Fatalf("%s: batch %d has the flags %x and the cursor %v", database, batches, flags, left)
			}
			if left != int64(0) && left != id {
				t.Fatalf("%s: batch %d is of cursor %v, not %v", database, batches, left, id)
			}
		}
		distinct := map[string]bool{}
		for _, id := range seen {
			distinct[fmt.Sprint(id)] = true
		}
		if len(seen) != 20 || len(distinct) != 20 || batches < 4 {
			t.Errorf("%s: %d batches with %v", database, batches, seen)
		}
	}
}
