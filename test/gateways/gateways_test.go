package gateways

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow"
)

var (
	lasts = flag.Duration("for", 25*time.Second, "how long gateways are killed and stopped")
	seed  = flag.Uint64("seed", 0, "of the choices; 0: another one each time")
	logs  = flag.String("logs", "", "a folder for the gateways' logs")
)

// The layout, by the gateways' clock: a partition a minute, kept for 8, held for 6; so that a second passes for each on the machine's.
const (
	keep = 8 * time.Minute
	hold = 6 * time.Minute
	// lease and longest are of the machine's time, and so is hold for the gateways: six seconds.
	lease   = 3 * time.Second
	longest = 2 * time.Second

	database = "fla"
	logs1    = "log"
	catalog  = "gateways"
)

// rig is a server, gateways in front of it, and all that work with them.
type rig struct {
	clock    clock
	server   *mongo.Client
	gateways []*gateway
	clients  []*mongo.Client // one a gateway
	written  *written

	stop chan struct{}
	all  sync.WaitGroup
}

func TestGateways(t *testing.T) {
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", *seed)
	rng := rand.New(rand.NewPCG(*seed, 1))
	r := newRig(t)
	for i := range r.clients {
		for n := range 2 {
			r.all.Go(func() { r.write(i, rand.New(rand.NewPCG(*seed, uint64(10*i+n+2)))) })
		}
		r.all.Go(func() { r.read(t, i, rand.New(rand.NewPCG(*seed, uint64(100+i)))) })
	}
	done := r.disturb(t, rng)
	close(r.stop)
	r.all.Wait()
	t.Log(done, "; ", r.written)
	r.checkAll(t)
	r.checkDecisions(t)
	for i, client := range r.clients {
		client.Disconnect(context.Background())
		r.gateways[i].end(t)
	}
}

// newRig starts a server and three gateways.
func newRig(t *testing.T) *rig {
	t.Helper()
	dir, err := os.MkdirTemp("", "oxbow") // short: the path of a socket has a limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	server, err := oxbow.Open(t.Context(), oxbow.Options{Listen: "127.0.0.1:0", Config: fmt.Appendf(nil, "backends: {local: {embedded: %q}}\ncatalog: server\nslow: 0\n", dir+"/data"), Log: errorsOf(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Close(ctx); err != nil {
			t.Logf("close the server: %v", err)
		}
	})
	config := dir + "/oxbow.yaml"
	text := fmt.Sprintf("backends: {r: {uri: %q}}\ncatalog: %s\nlease: %s\nlongest: %s\nslow: 0\ncollections:\n"+
		"  %s.%s: {time: {field: at, every: minute}, hash: {field: n, count: 2}, keep: %dm, hold: %dm, ahead: 4}\n",
		server.URI(), catalog, lease, longest, database, logs1, int(keep.Minutes()), int(hold.Minutes()))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &rig{clock: newClock(*lasts + 10*time.Minute), server: connect(t, server.URI()), stop: make(chan struct{}), written: newWritten()}
	binary := build(t, dir)
	for i := range 3 {
		g := &gateway{binary: binary, config: config, socket: fmt.Sprintf("%s/%d.sock", dir, i), clock: r.clock, name: fmt.Sprint(i), log: logFile(t, i)}
		g.start(t)
		if !<-g.serving {
			t.Fatalf("gateway %d has not started", i)
		}
		t.Cleanup(func() {
			if g.process.ProcessState == nil {
				g.process.Process.Kill()
			}
		})
		r.gateways = append(r.gateways, g)
		r.clients = append(r.clients, connect(t, "mongodb://"+strings.ReplaceAll(g.socket, "/", "%2F")))
	}
	return r
}

// logFile is where a gateway's log goes: nowhere without a folder for it.
func logFile(t *testing.T, i int) *os.File {
	t.Helper()
	name := os.DevNull
	if *logs != "" {
		name = filepath.Join(*logs, fmt.Sprintf("gateway%d.log", i))
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// errorsOf fails a test for each error that is logged.
func errorsOf(t *testing.T) slog.Handler {
	return slog.NewTextHandler(failing{t}, &slog.HandlerOptions{Level: slog.LevelError})
}

type failing struct{ t *testing.T }

func (f failing) Write(line []byte) (int, error) {
	f.t.Errorf("the server's log: %s", line)
	return len(line), nil
}

func connect(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetServerSelectionTimeout(5 * time.Second).SetHeartbeatInterval(500 * time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// disturbed counts what was done to gateways.
type disturbed struct{ kills, stops, long int }

func (d disturbed) String() string {
	return fmt.Sprintf("%d kills, %d stops, of which %d for longer than a lease", d.kills, d.stops, d.long)
}

// disturb kills gateways, and stops them for a while, for as long as the test lasts.
func (r *rig) disturb(t *testing.T, rng *rand.Rand) (d disturbed) {
	began := time.Now()
	var busy sync.WaitGroup
	working := make([]sync.Mutex, len(r.gateways))
	for time.Since(began) < *lasts && !t.Failed() {
		time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond) // where in the work it falls, no matter where
		i := rng.IntN(len(r.gateways))
		g := r.gateways[i]
		pause := time.Duration(rng.Int64N(int64(3 * lease)))
		if !working[i].TryLock() {
			continue
		}
		if rng.IntN(2) == 0 {
			d.kills++
			busy.Go(func() {
				defer working[i].Unlock()
				g.kill(t)
				time.Sleep(pause / 3)
				r.restart(t, g)
			})
			continue
		}
		d.stops++
		if pause > lease {
			d.long++
		}
		busy.Go(func() {
			defer working[i].Unlock()
			g.process.Process.Signal(syscall.SIGSTOP)
			time.Sleep(pause)
			g.process.Process.Signal(syscall.SIGCONT)
		})
	}
	busy.Wait()
	return d
}

func (r *rig) restart(t *testing.T, g *gateway) {
	g.start(t)
	if !<-g.serving {
		t.Errorf("gateway %s has not started again", g.name)
	}
}
