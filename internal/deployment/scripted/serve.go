package scripted

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/wire"
)

// Serve has the members of sets listen, each at an address of its own, which becomes its host, until the test ends. It returns the URI of all of the first set.
func Serve(t testing.TB, sets ...*Set) string {
	t.Helper()
	for _, s := range sets {
		for _, m := range s.Members {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			m.Host = listener.Addr().String()
			t.Cleanup(listen(listener, m))
		}
	}
	first := sets[0]
	return "mongodb://" + strings.Join(first.hosts(), ",") + "/?replicaSet=" + first.Name + "&serverSelectionTimeoutMS=2000&heartbeatFrequencyMS=500"
}

// listen serves a member's connections until the function that it returns is called.
func listen(listener net.Listener, m *Member) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			nc, err := listener.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { m.serve(ctx, nc) })
		}
	})
	return func() {
		cancel()
		listener.Close()
		serving.Wait()
	}
}

// serve answers one command after the other until the connection breaks, as it does when the member is down.
func (m *Member) serve(ctx context.Context, nc net.Conn) {
	defer nc.Close()
	defer context.AfterFunc(ctx, func() { nc.Close() })()
	in := wire.NewReader(nc)
	for {
		msg, err := in.Next()
		if err != nil || msg.Parse() != nil {
			return
		}
		reply, err := m.Run(ctx, request(msg))
		if err != nil {
			return
		}
		out := wire.FinishReply(append(make([]byte, wire.ReplyRoom), reply...), 1, msg.Header.RequestID, 0)
		if msg.Header.OpCode == wire.OpQuery {
			out = wire.AppendReply(nil, 1, msg.Header.RequestID, reply, false)
		}
		msg.Release()
		if _, err := nc.Write(out); err != nil {
			return
		}
	}
}

// request copies a message's command.
func request(msg *wire.Message) *backend.Request {
	req := &backend.Request{Body: append(bson.Document(nil), msg.Body...)}
	for _, s := range msg.Sequences {
		own := backend.Sequence{Name: s.Name}
		for _, doc := range s.Documents {
			own.Documents = append(own.Documents, append(bson.Document(nil), doc...))
		}
		req.Sequences = append(req.Sequences, own)
	}
	return req
}
