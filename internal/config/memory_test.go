package config

import (
	"strings"
	"testing"
)

func TestDivideMemory(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name, text             string
		machine                int64
		total, cache, memtable int64
		stores                 int64
	}{
		{name: "a large machine", machine: 64 * gib, total: 48 * gib, cache: 512 << 20, memtable: 64 << 20, stores: 832 << 20},
		{name: "a container", machine: gib, total: 768 << 20, cache: 96 << 20, memtable: 12 << 20, stores: 156 << 20},
		{name: "a container that is too small", machine: 64 << 20, total: 284 << 20, cache: 8 << 20, memtable: 4 << 20, stores: 28 << 20},
		{name: "a machine that does not tell", total: 4 * gib, cache: 512 << 20, memtable: 64 << 20, stores: 832 << 20},
		{name: "the key", text: "memory: 2GiB", machine: 64 * gib, total: 2 * gib, cache: 256 << 20, memtable: 32 << 20, stores: 416 << 20},
		{name: "a cache larger than the machine", text: "backends: {a: {embedded: d, cache: 2GiB}}", machine: gib,
			total: 2*gib + 316<<20, cache: 2 * gib, memtable: 12 << 20, stores: 2*gib + 60<<20},
		{name: "two stores and a server", text: "memory: 2GiB\nbackends: {a: {embedded: d}, b: {embedded: e}, c: {uri: \"mongodb://x\"}}\ndatabases: {\"*\": a}",
			total: 2 * gib, cache: 128 << 20, memtable: 16 << 20, stores: 416 << 20},
	} {
		cfg := parsed(t, c.text)
		m, err := cfg.DivideMemory(c.machine)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		cache, memtable := m.Of(cfg.Backends[0].Embedded)
		if m.Total != c.total || m.Stores != c.stores || m.Clients != (c.total-c.stores)/2 || cache != c.cache || memtable != c.memtable {
			t.Errorf("%s: %+v, cache %d, memtable %d", c.name, m, cache, memtable)
		}
	}
}

func TestMemoryRefused(t *testing.T) {
	for text, want := range map[string]string{
		"memory: much":          `oxbow.yaml:1:9: memory: "much" is not a size`,
		"memory:":               "memory: has no value",
		"memory: 0":             "memory: \"0\" is not a size",
		"memory: 100MiB":        "memory: 100 MiB leave clients less than 256 MiB",
		"memory: [1GiB]":        "memory: must be a text",
		"a: 1\nmemory: 283MiB":  "oxbow.yaml:2:9: memory: 283 MiB leave clients less than 256 MiB",
		"memory: 9000000000GiB": "is not a size",
		"memory: 1GiB\nbackends: {a: {embedded: d, cache: 8388607TiB}}": "leave clients less",
	} {
		_, err := Parse("oxbow.yaml", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if err := Diff(parsed(t, ""), parsed(t, "memory: 1GiB"), func(string) bool { return false }); err == nil || !strings.Contains(err.Error(), "memory: it can't change") {
		t.Errorf("a reload with another memory: %v", err)
	}
}
