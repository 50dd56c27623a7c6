package server

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// idleConnections is the number that must cost less than idleBytes together.
const (
	idleConnections = 2000
	idleBytes       = 100 << 20
)

// TestMain turns the test binary into a server process for TestIdleConnections.
func TestMain(m *testing.M) {
	if os.Getenv("OXBOW_TEST_SERVE") != "" {
		serveForIdle()
		return
	}
	os.Exit(m.Run())
}

// processT stands in for a test in the server process: what fails there ends it.
type processT struct{ testing.TB }

func (processT) Helper()           {}
func (processT) Cleanup(func())    {}
func (processT) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// serveForIdle serves until standard input ends. For each line it answers with what the process's memory is then.
func serveForIdle() {
	s := serve(processT{}, Options{})
	fmt.Println(s.address)
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Println(m.Sys-m.HeapReleased, m.HeapInuse+m.StackInuse, residentBytes())
	}
}

func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	pages, _ := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// TestIdleConnections measures the memory of a server in a process of its own, before and after many clients have each run a few
// commands, a large one among them, and then fallen silent.
func TestIdleConnections(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's shadow memory is several times the server's")
	}
	p := exec.Command(os.Args[0])
	p.Env = append(os.Environ(), "OXBOW_TEST_SERVE=1")
	p.Stderr = os.Stderr
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	defer p.Wait()
	defer in.Close()
	lines := bufio.NewScanner(out)
	lines.Scan()
	s := &served{address: lines.Text()}
	measure := func() (system, inUse, resident int64) {
		io.WriteString(in, "now\n")
		lines.Scan()
		if _, err := fmt.Sscan(lines.Text(), &system, &inUse, &resident); err != nil {
			t.Fatal(err)
		}
		return system, inUse, resident
	}
	_, _, before := measure()
	hello := driver.D{{Key: "hello", Value: 1}, {Key: "$db", Value: "admin"}, {Key: "client", Value: driver.D{{Key: "application", Value: driver.D{{Key: "name", Value: "idle"}}}}}}
	large := append(ping(), driver.E{Key: "comment", Value: strings.Repeat("x", 100_000)})
	for range idleConnections {
		c := s.dial(t)
		c.ask(hello)
		c.ask(driver.D{{Key: "serverStatus", Value: 1}, {Key: "$db", Value: "admin"}})
		c.ask(large)
	}
	system, inUse, resident := measure()
	t.Logf("%d idle connections: %.1f MB resident (%.1f before), %.1f MB from the system, %.1f MB of heap and stacks in use",
		idleConnections, float64(resident)/1e6, float64(before)/1e6, float64(system)/1e6, float64(inUse)/1e6)
	if max(system, resident) > idleBytes {
		t.Errorf("%d idle connections take %d bytes, more than %d", idleConnections, max(system, resident), idleBytes)
	}
}
