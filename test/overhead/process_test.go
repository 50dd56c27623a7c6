package overhead

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"oxbow"
)

// The environment tells the test binary, run again, what to be. A role ends with its standard input.
const (
	roleVariable  = "OXBOW_OVERHEAD_ROLE" // relay or oxbow
	inputVariable = "OXBOW_OVERHEAD_WITH" // the relay's target, or Oxbow's configuration
)

func TestMain(m *testing.M) {
	var err error
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "relay":
		err = relay(os.Getenv(inputVariable))
	case "oxbow":
		err = serve(os.Getenv(inputVariable))
	default:
		err = fmt.Errorf("no role %q", role)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve is Oxbow as a process.
func serve(config string) error {
	g, err := oxbow.Open(context.Background(), oxbow.Options{
		Config: []byte(config), Listen: "127.0.0.1:0", Log: slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}),
	})
	if err != nil {
		return err
	}
	fmt.Println(g.Addr())
	answer()
	return g.Close(context.Background())
}

// answer answers each line of the standard input, until that ends, with what the process has used so far.
func answer() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		u := usedHere()
		fmt.Println(u.allocations, u.nanoseconds)
	}
}

// relay copies bytes between clients and a target, a connection each, and does nothing else.
func relay(target string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			go copyBytes(server, client)
			go copyBytes(client, server)
		}
	}()
	answer()
	return nil
}

// copyBytes copies with a buffer, since splicing costs small messages more.
func copyBytes(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if _, failed := to.Write(buf[:n]); err != nil || failed != nil {
			return
		}
	}
}

// process is a role being played.
type process struct {
	address string
	in      io.WriteCloser
	out     *bufio.Scanner
}

// play starts a role, which ends with the test.
func play(tb testing.TB, role, input string) *process {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role, inputVariable+"="+input)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			tb.Errorf("%s: %v", role, err)
		}
	})
	p := &process{in: in, out: bufio.NewScanner(out)}
	if !p.out.Scan() {
		tb.Fatalf("%s does not start: %v", role, p.out.Err())
	}
	p.address = p.out.Text()
	return p
}

// used is what a process has used, or used between two times: allocations, and nanoseconds of processor time.
type used struct{ allocations, nanoseconds int64 }

// usedHere is what this process has used.
func usedHere() used {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it fails for other arguments only
	return used{int64(m.Mallocs), u.Utime.Nano() + u.Stime.Nano()}
}

// used asks the process.
func (p *process) used(tb testing.TB) (u used) {
	tb.Helper()
	fmt.Fprintln(p.in)
	if !p.out.Scan() {
		tb.Fatalf("the process is gone: %v", p.out.Err())
	}
	if _, err := fmt.Sscan(p.out.Text(), &u.allocations, &u.nanoseconds); err != nil {
		tb.Fatal(err)
	}
	return u
}

func (u *used) add(more used) {
	u.allocations += more.allocations
	u.nanoseconds += more.nanoseconds
}

func (u used) since(before used) used {
	return used{u.allocations - before.allocations, u.nanoseconds - before.nanoseconds}
}

// deployment is a backend with a relay and a gateway in front of it.
type deployment struct {
	backend, relay, gateway *process
}

// layouts are the collections of the gateway: fla.plain, fla.time, fla.hash, and fla.parted for ordered inserts. Straight to the backend, and through the relay, all are plain.
const layouts = `
catalog: gateway
backends: {second: {uri: "mongodb://%s/"}}
collections:
  fla.time: {time: {field: time, unit: s, every: hour}, ahead: 1}
  fla.hash: {hash: {field: dev, count: 16}}
  fla.parted: {hash: {field: dev, count: 16}, ordered: partition}
`

func deploy(tb testing.TB) *deployment {
	tb.Helper()
	d := &deployment{backend: play(tb, "oxbow", fmt.Sprintf("backends: {local: {embedded: %q}}", tb.TempDir()))}
	d.relay = play(tb, "relay", d.backend.address)
	d.gateway = play(tb, "oxbow", fmt.Sprintf(layouts, d.backend.address))
	return d
}
