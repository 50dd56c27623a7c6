package config

import "fmt"

// What a configuration that says nothing else divides the process's memory into. Each store has one block cache, and up to memtablesPerStore
// memtables: those that may wait for their flush before writers have to, and the one being written.
const (
	mostCache         = 512 << 20
	leastCache        = 8 << 20
	mostMemtable      = 64 << 20
	leastMemtable     = 4 << 20
	memtablesPerStore = 5
)

// LeastMemory is the memory that clients need at least besides the stores, in bytes: that two of the largest messages and replies can be
// under way, twice over, since garbage takes as much again before it is collected.
const LeastMemory = 256 << 20

// mostStore keeps sums of sizes far from where they overflow, in bytes.
const mostStore = 1 << 46

// Memory is how the memory of the process is divided, in bytes.
type Memory struct {
	Total   int64 // what the process should stay below
	Stores  int64 // block caches and memtables of all embedded backends
	Clients int64 // what messages, replies, queries and cursors may hold at once

	cache, memtable int64 // of a backend that names none
}

// DivideMemory divides what the process may have. machine is the memory of the machine or of the process's control group, 0 if unknown: without the
// key memory three quarters of it count, or as much more as the stores ask for. The error says that the key leaves too little beside the stores.
func (c *Config) DivideMemory(machine int64) (Memory, error) {
	m := Memory{Total: c.Memory}
	if m.Total == 0 {
		m.Total = machine / 4 * 3
	}
	if m.Total == 0 {
		m.Total = 4 << 30
	}
	stores := int64(0)
	for i := range c.Backends {
		if c.Backends[i].Embedded != nil {
			stores++
		}
	}
	stores = max(stores, 1)
	m.cache = min(max(m.Total/8/stores, leastCache), mostCache)
	m.memtable = min(max(m.Total/64/stores, leastMemtable), mostMemtable)
	for i := range c.Backends {
		if e := c.Backends[i].Embedded; e != nil {
			cache, memtable := m.Of(e)
			m.Stores = min(m.Stores+min(cache, mostStore)+memtablesPerStore*min(memtable, mostStore), mostStore)
		}
	}
	if c.Memory == 0 {
		m.Total = max(m.Total, m.Stores+LeastMemory)
	}
	if m.Total-m.Stores < LeastMemory {
		return m, fmt.Errorf("%d MiB leave clients less than %d MiB: caches and memtables (%d a backend) of the embedded backends take %d MiB",
			m.Total>>20, LeastMemory>>20, memtablesPerStore, m.Stores>>20)
	}
	m.Clients = (m.Total - m.Stores) / 2
	return m, nil
}

// Of returns the sizes of an embedded backend's block cache and of each of its memtables.
func (m Memory) Of(e *Embedded) (cache, memtable int64) {
	cache, memtable = e.CacheBytes, e.MemtableBytes
	if cache == 0 {
		cache = m.cache
	}
	if memtable == 0 {
		memtable = m.memtable
	}
	return cache, memtable
}
