package oxbow

import (
	"bytes"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"oxbow/internal/config"
)

// divideMemory divides the process's memory as the configuration and the machine say.
func divideMemory(cfg *config.Config, log *slog.Logger) (config.Memory, error) {
	machine := machineMemory()
	m, err := cfg.DivideMemory(machine)
	if err != nil {
		return m, err
	}
	if machine > 0 && m.Total > machine {
		log.Warn("the process may take more memory than there is", "limitMiB", m.Total>>20, "machineMiB", machine>>20)
	}
	log.Info("memory", "limitMiB", m.Total>>20, "storesMiB", m.Stores>>20, "clientsMiB", m.Clients>>20)
	return m, nil
}

// LimitProcess makes Go's garbage collector keep the whole process below the configuration's memory. It is for a process that is
// Oxbow's own: a program that embeds Oxbow as a library has a heap of its own, and sets the limit of both itself. The environment variable
// GOMEMLIMIT goes before it.
func (g *Gateway) LimitProcess() {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit := g.memory.Total
	if storesOutsideGo {
		limit -= g.memory.Stores
	}
	debug.SetMemoryLimit(limit)
}

// machineMemory is what the machine has, or the process's control group where that allows less, in bytes; 0 where neither tells.
func machineMemory() int64 {
	least := int64(0)
	for _, n := range []int64{
		totalMemory(meminfo),
		groupLimit("/sys/fs/cgroup/memory.max"),
		groupLimit("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
	} {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// meminfo is where Linux tells of its memory.
const meminfo = "/proc/meminfo"

// totalMemory reads MemTotal from a file as /proc/meminfo; 0 if it isn't there.
func totalMemory(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) >= 2 && fields[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// groupLimit reads a control group's limit, which in a container stands at the root of the file system of groups
// (https://docs.kernel.org/admin-guide/cgroup-v2.html, memory.max; version 1 has memory.limit_in_bytes). 0: none.
func groupLimit(file string) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil { // "max"
		return 0
	}
	return n
}
