package oxbow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow/internal/backend"
	"oxbow/internal/command"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
	"oxbow/internal/wire"
)

// smallMemory leaves 146 MiB to clients, of which replies can have half.
const smallMemory = `
memory: 320MiB
backends: {local: {embedded: %q, cache: 8MiB, memtable: 4MiB}}
collections:
  fla.split: {hash: {field: _id, count: 8}}
`

// openSmall opens a gateway with little memory, has it prepared, and connects a client.
func openSmall(t *testing.T, prepare ...func(*Gateway)) (*Gateway, *mongo.Client) {
	t.Helper()
	g, err := Open(t.Context(), Options{
		Config: fmt.Appendf(nil, smallMemory, t.TempDir()), Listen: "127.0.0.1:0", stallTimeout: 2 * time.Second,
		Log: slog.DiscardHandler,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(context.Background()) })
	for _, p := range prepare {
		p(g)
	}
	g.table.Operations().Running() // takes the lock that every connection takes first, so that all see what was prepared
	client, err := mongo.Connect(options.Client().ApplyURI(g.URI()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Disconnect(context.Background()) })
	return g, client
}

// fill inserts documents of a MiB each.
func fill(t *testing.T, client *mongo.Client, collection string, n int) {
	t.Helper()
	c := client.Database("fla").Collection(collection)
	text := strings.Repeat("x", 1<<20-100)
	for i := range n {
		if _, err := c.InsertOne(t.Context(), driver.D{{Key: "_id", Value: int32(i)}, {Key: "n", Value: rand.Int32()}, {Key: "text", Value: text}}); err != nil {
			t.Fatal(err)
		}
	}
}

// message frames a command as an OP_MSG, or as an OP_COMPRESSED around one.
func message(t *testing.T, compressor wire.Compressor, cmd driver.D) []byte {
	t.Helper()
	body, err := driver.Marshal(cmd)
	if err != nil {
		t.Fatal(err)
	}
	m := wire.FinishReply(append(make([]byte, wire.ReplyRoom), body...), 1, 0, 0)
	if compressor != wire.NotCompressed {
		out, smaller := wire.AppendCompressed(nil, compressor, m)
		if !smaller {
			t.Fatal("the message is not compressible")
		}
		return out
	}
	return m
}

func open(t *testing.T, g *Gateway) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc
}

// eventually waits for what must come about by itself.
func eventually(t *testing.T, what string, g *Gateway, is func() bool) {
	t.Helper()
	for ctx := t.Context(); !is(); time.Sleep(10 * time.Millisecond) {
		if deadline, ok := t.Deadline(); ctx.Err() != nil || ok && time.Until(deadline) < 10*time.Second {
			t.Fatalf("%s: %+v", what, g.budget.Figures())
		}
	}
}

// TestClientsThatDoNotRead: 64 clients ask for 16 MB each and read nothing. What they make the server hold is bounded, others are served
// meanwhile, and they are let go.
func TestClientsThatDoNotRead(t *testing.T) {
	if testing.Short() {
		t.Skip("measures the heap: under the race detector, which runs the short tests, its size says nothing")
	}
	const clients = 64
	for _, collection := range []string{"plain", "split"} {
		t.Run(collection, func(t *testing.T) {
			g, client := openSmall(t)
			fill(t, client, collection, 20)
			before := liveHeap()
			var deaf []net.Conn
			for range clients {
				nc := open(t, g)
				if _, err := nc.Write(message(t, wire.NotCompressed, driver.D{
					{Key: "find", Value: collection}, {Key: "batchSize", Value: int32(100)}, {Key: "$db", Value: "fla"},
				})); err != nil {
					t.Fatal(err)
				}
				deaf = append(deaf, nc)
			}
			small := client.Database("fla").Collection("small")
			peak := uint64(0)
			eventually(t, "the first replies fill their share", g, func() bool {
				peak = max(peak, liveHeap())
				return g.budget.Figures().Refused+g.budget.Figures().By[memory.Replies]>>20 > 32
			})
			for i := range 100 {
				if _, err := small.InsertOne(t.Context(), driver.D{{Key: "_id", Value: i}}); err != nil {
					t.Fatalf("an insert meanwhile: %v", err)
				}
				if err := small.FindOne(t.Context(), driver.D{{Key: "_id", Value: i}}).Err(); err != nil {
					t.Fatalf("a find meanwhile: %v", err)
				}
				if i%10 == 0 {
					peak = max(peak, liveHeap())
				}
			}
			if limit := uint64(g.memory.Total - g.memory.Stores); peak > before+limit {
				t.Errorf("the heap grew from %d MiB to %d MiB; beside the stores there may be %d MiB", before>>20, peak>>20, limit>>20)
			}
			if f := g.budget.Figures(); f.Peak > f.Limit {
				t.Errorf("%+v", f)
			}
			eventually(t, "the server lets them go", g, func() bool { return g.budget.Figures().By[memory.Replies] == 0 })
			cut := 0
			for _, nc := range deaf {
				if err := readReply(nc); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
					cut++
				} else if err != nil && !mongoerr.Is(err, mongoerr.ExceededMemoryLimit) {
					t.Errorf("neither let go nor answered: %v", err)
				}
			}
			if cut == 0 {
				t.Error("no client was let go")
			}
			t.Logf("heap before %d MiB, at most %d MiB; %d let go; %+v", before>>20, peak>>20, cut, g.budget.Figures())
		})
	}
}

func liveHeap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestLargeMessages: many messages of 20 MB at once, some of them compressed, are all taken, one after the other where there is no memory
// for them together.
func TestLargeMessages(t *testing.T) {
	g, _ := openSmall(t)
	text := strings.Repeat("x", 15_000_000)
	var wait sync.WaitGroup
	for i, compressor := range []wire.Compressor{wire.NotCompressed, wire.Snappy, wire.Zlib, wire.Zstd, wire.NotCompressed, wire.Snappy, wire.Zlib, wire.Zstd} {
		m := message(t, compressor, driver.D{{Key: "ping", Value: 1}, {Key: "comment", Value: text}, {Key: "$db", Value: "admin"}})
		nc := open(t, g)
		wait.Go(func() {
			nc.Write(m)
			if err := readReply(nc); err != nil {
				t.Errorf("client %d: %v", i, err)
			}
		})
	}
	wait.Wait()
	eventually(t, "all is free", g, func() bool { return g.budget.Figures().Used == 0 })
	if f := g.budget.Figures(); f.Peak > f.Limit || f.Peak < 15_000_000 {
		t.Errorf("%+v", f)
	}
}

// TestMessagesThatStall: clients that have sent most of a large message and no more fill what messages can have; they are let go, and small
// commands are answered meanwhile.
func TestMessagesThatStall(t *testing.T) {
	g, client := openSmall(t)
	m := message(t, wire.NotCompressed, driver.D{{Key: "ping", Value: 1}, {Key: "comment", Value: strings.Repeat("x", 15_000_000)}, {Key: "$db", Value: "admin"}})
	var stalled []net.Conn
	for range 12 {
		nc := open(t, g)
		stalled = append(stalled, nc)
		go nc.Write(m[:len(m)-1])
	}
	eventually(t, "a message waits", g, func() bool { return g.budget.Figures().Waited > 0 })
	if err := client.Ping(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if f := g.budget.Figures(); f.By[memory.Messages] > f.Limit/2+20<<20 {
		t.Errorf("messages have more than their share and one message: %+v", f)
	}
	for _, nc := range stalled {
		io.Copy(io.Discard, nc) // until the server closes it
	}
	eventually(t, "all is free", g, func() bool { return g.budget.Figures().By[memory.Messages] == 0 })
}

func readReply(nc net.Conn) error {
	var head [wire.HeaderSize]byte
	if _, err := io.ReadFull(nc, head[:]); err != nil {
		return err
	}
	rest := make([]byte, binary.LittleEndian.Uint32(head[:])-wire.HeaderSize)
	if _, err := io.ReadFull(nc, rest); err != nil {
		return err
	}
	if wire.OpCode(binary.LittleEndian.Uint32(head[12:])) == wire.OpCompressed {
		return nil
	}
	return backend.Check(rest[5:])
}

// TestNothingLeaks: whatever commands clients send and however they leave, in the end nothing is reserved.
func TestNothingLeaks(t *testing.T) {
	g, client := openSmall(t, func(g *Gateway) {
		g.table.Register("panicking", command.Entry{Handler: func(_ context.Context, _ *command.Request, reply *command.Reply) error {
			if err := reply.Memory.Grow(8 << 20); err != nil {
				return err
			}
			panic("on purpose")
		}})
	})
	fill(t, client, "plain", 20)
	fill(t, client, "split", 20)
	for _, name := range []string{"plain", "split"} {
		if _, err := client.Database("fla").Collection(name).Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: driver.D{{Key: "n", Value: 1}}}); err != nil {
			t.Fatal(err)
		}
	}
	var wait sync.WaitGroup
	for worker := range 8 {
		random := rand.New(rand.NewPCG(uint64(worker), 1))
		wait.Go(func() {
			for range 40 {
				leaveSomehow(t, g, random)
			}
		})
	}
	wait.Wait()
	if _, err := client.Database("admin").RunCommand(t.Context(), driver.D{{Key: "killAllSessions", Value: driver.A{}}}).Raw(); err != nil {
		t.Fatal(err)
	}
	client.Disconnect(context.Background())
	f := g.budget.Figures()
	if f.Refused == 0 {
		t.Errorf("nothing was ever refused: %+v", f)
	}
	if err := g.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if now := g.budget.Figures(); now.Used != 0 || now.By != (memory.Figures{}).By {
		t.Errorf("closed, and still reserved: %+v", now)
	}
	t.Logf("%+v", f)
}

// leaveSomehow sends a command, and reads all of the reply, some or none before it leaves.
func leaveSomehow(t *testing.T, g *Gateway, random *rand.Rand) {
	name := []string{"plain", "split"}[random.IntN(2)]
	stage := func(name string, arg any) driver.D { return driver.D{{Key: name, Value: arg}} }
	aggregate := func(stages ...any) driver.D {
		return driver.D{{Key: "aggregate", Value: name}, {Key: "pipeline", Value: driver.A(stages)}, {Key: "cursor", Value: driver.D{{Key: "batchSize", Value: int32(random.IntN(30))}}}}
	}
	commands := []driver.D{
		{{Key: "find", Value: name}, {Key: "batchSize", Value: int32(random.IntN(30))}},
		{{Key: "find", Value: name}, {Key: "sort", Value: driver.D{{Key: "text", Value: -1}}}, {Key: "batchSize", Value: int32(3)}},
		{{Key: "find", Value: name}, {Key: "filter", Value: driver.D{{Key: "n", Value: driver.D{{Key: "$gt", Value: 0}}}}}, {Key: "batchSize", Value: int32(2)}},
		{{Key: "find", Value: name}, {Key: "sort", Value: driver.D{{Key: "n", Value: 1}}}, {Key: "singleBatch", Value: true}, {Key: "limit", Value: int32(12)}},
		{{Key: "find", Value: name}, {Key: "filter", Value: driver.D{{Key: "_id", Value: int32(random.IntN(20))}}}},
		{{Key: "find", Value: name}, {Key: "sort", Value: driver.D{{Key: "text", Value: 1}}}, {Key: "maxTimeMS", Value: int32(1 + random.IntN(20))}},
		{{Key: "distinct", Value: name}, {Key: "key", Value: []string{"n", "text"}[random.IntN(2)]}},
		{{Key: "findAndModify", Value: name}, {Key: "query", Value: driver.D{{Key: "_id", Value: int32(random.IntN(20))}}}, {Key: "update", Value: driver.D{{Key: "$inc", Value: driver.D{{Key: "m", Value: 1}}}}}},
		aggregate(stage("$sort", driver.D{{Key: "text", Value: 1}, {Key: "n", Value: 1}})),
		aggregate(stage("$group", driver.D{{Key: "_id", Value: "$n"}, {Key: "all", Value: driver.D{{Key: "$push", Value: "$text"}}}})),
		aggregate(stage("$group", driver.D{{Key: "_id", Value: nil}, {Key: "all", Value: driver.D{{Key: "$push", Value: "$text"}}}})),
		aggregate(stage("$lookup", driver.D{{Key: "from", Value: "plain"}, {Key: "localField", Value: "_id"}, {Key: "foreignField", Value: "_id"}, {Key: "as", Value: "other"}})),
		{{Key: "ping", Value: 1}, {Key: "comment", Value: strings.Repeat("y", 1+random.IntN(12_000_000))}},
		{{Key: "panicking", Value: 1}},
	}
	cmd := append(commands[random.IntN(len(commands))], driver.E{Key: "$db", Value: "fla"})
	compressor := wire.NotCompressed
	if cmd[0].Key == "ping" && random.IntN(2) == 0 {
		compressor = []wire.Compressor{wire.Snappy, wire.Zlib, wire.Zstd}[random.IntN(3)]
		cmd[1].Value = strings.Repeat("y", 2_000_000)
	}
	m := message(t, compressor, cmd)
	nc, err := net.Dial("tcp", g.Addr().String())
	if err != nil {
		t.Error(err)
		return
	}
	defer nc.Close()
	switch random.IntN(4) {
	case 0: // leaves in the middle of the message
		nc.Write(m[:1+random.IntN(len(m))])
	case 1: // leaves in the middle of the reply
		nc.Write(m)
		io.CopyN(io.Discard, nc, wire.HeaderSize)
	default: // leaves the cursor behind
		nc.Write(m)
		readReply(nc) // whatever the command gives, errors too
	}
}

func TestMachineMemory(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	if n := totalMemory(write("meminfo", "MemFree: 1 kB\nMemTotal:       2048 kB\n")); n != 2<<20 {
		t.Errorf("MemTotal: %d", n)
	}
	if n := totalMemory(filepath.Join(dir, "none")); n != 0 {
		t.Errorf("no file: %d", n)
	}
	for text, want := range map[string]int64{"max\n": 0, "536870912\n": 512 << 20, "": 0, "9223372036854771712\n": 9223372036854771712} {
		if n := groupLimit(write("memory.max", text)); n != want {
			t.Errorf("%q: %d", text, n)
		}
	}
}
