package failures

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"
)

// rawClient sends commands as they are: no driver that sends them again or reads its own meaning into errors.
type rawClient struct {
	t       testing.TB
	nc      net.Conn
	session bson.D
	number  int64

	database string // that its commands go to
}

func dialRaw(t testing.TB, g *gateway) *rawClient {
	t.Helper()
	nc, err := net.Dial("tcp", g.relay.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	id := bson.NewObjectID()
	return &rawClient{t: t, nc: nc, database: database, session: bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: append(id[:], 1, 2, 3, 4)}}}}
}

// numbered adds a session and the next transaction number to a command.
func (c *rawClient) numbered(cmd bson.D) bson.D {
	c.number++
	return append(cmd, bson.E{Key: "lsid", Value: c.session}, bson.E{Key: "txnNumber", Value: c.number})
}

// send sends a command.
func (c *rawClient) send(cmd bson.D) {
	c.t.Helper()
	body, err := bson.Marshal(append(cmd, bson.E{Key: "$db", Value: c.database}))
	if err != nil {
		c.t.Fatal(err)
	}
	at, out := wiremessage.AppendHeaderStart(nil, 1, 0, wiremessage.OpMsg)
	out = wiremessage.AppendMsgFlags(out, 0)
	out = wiremessage.AppendMsgSectionType(out, wiremessage.SingleDocument)
	out = append(out, body...)
	binary.LittleEndian.PutUint32(out[at:], uint32(len(out)))
	if _, err := c.nc.Write(out); err != nil {
		c.t.Fatal(err)
	}
}

// run sends a command and returns the reply.
func (c *rawClient) run(cmd bson.D) bson.M {
	c.t.Helper()
	c.send(cmd)
	const head = 16 + 4 + 1 // header, flags, the kind of the only section
	length := make([]byte, 4)
	if _, err := io.ReadFull(c.nc, length); err != nil {
		c.t.Fatal(err)
	}
	rest := make([]byte, binary.LittleEndian.Uint32(length)-4)
	if _, err := io.ReadFull(c.nc, rest); err != nil {
		c.t.Fatal(err)
	}
	var reply bson.M
	if err := bson.Unmarshal(rest[head-4:], &reply); err != nil {
		c.t.Fatal(err)
	}
	return reply
}
