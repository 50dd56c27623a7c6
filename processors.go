package oxbow

import (
	"os"
	"runtime"
)

// ShareProcessors keeps the compactions of embedded stores from holding commands up. Go takes a processor away from a goroutine that has had it for 10 ms, and
// compactions, of which a store runs as many as half of the processors and at least two, may have all: a command that comes in then waits for so long, and that
// is its p99. With as many more for Go than the machine has, each has a thread of its own, and the operating system lets the one that has just woken up run first.
// It is for a process that is Oxbow's own, as LimitProcess is. The environment variable GOMAXPROCS goes before it.
func (g *Gateway) ShareProcessors() {
	if os.Getenv("GOMAXPROCS") != "" || !g.embeds() {
		return
	}
	machine := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(machine + max(2, machine/2))
}

// embeds reports whether a backend is a store of this process.
func (g *Gateway) embeds() bool {
	for _, b := range g.backends {
		if b.Abilities().Embedded {
			return true
		}
	}
	return false
}
