package config

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// mapping is a YAML mapping being read: each key is taken once, and what is left at the end is unknown.
type mapping struct {
	*report
	at      ast.Node
	path    string
	entries []entry
}

// entry is a key of a mapping and its value.
type entry struct {
	key   string
	at    ast.Node // the key
	value ast.Node
	taken bool
}

// openMapping reads the keys of a mapping. A node of another kind, a repeated key, an alias or a merge is reported; the result is then empty or
// without it. Null is an empty mapping.
func openMapping(r *report, n ast.Node, path string) *mapping {
	m := &mapping{report: r, at: n, path: path}
	switch n := n.(type) {
	case nil, *ast.NullNode:
	case *ast.MappingNode:
		for _, v := range n.Values {
			m.enter(v)
		}
	case *ast.MappingValueNode:
		m.enter(n)
	default:
		r.add(n, path, "must be a mapping of keys to values")
	}
	return m
}

func (m *mapping) enter(v *ast.MappingValueNode) {
	key, ok := scalar(v.Key)
	if !ok {
		m.add(v.Key, m.path, "a key must be plain text: aliases, merges and compound keys are not taken")
		return
	}
	if i := slices.IndexFunc(m.entries, func(e entry) bool { return e.key == key }); i >= 0 {
		m.add(v.Key, m.child(key), "is there twice, first in line %d", m.entries[i].at.GetToken().Position.Line)
		return
	}
	m.entries = append(m.entries, entry{key: key, at: v.Key, value: v.Value})
}

// child returns the dotted path of a key.
func (m *mapping) child(key string) string {
	if m.path == "" {
		return key
	}
	return m.path + "." + key
}

// take returns the value of a key, or nil.
func (m *mapping) take(key string) ast.Node {
	for i := range m.entries {
		if e := &m.entries[i]; e.key == key {
			e.taken = true
			if _, null := e.value.(*ast.NullNode); null || e.value == nil {
				m.add(e.at, m.child(key), "has no value")
				return nil
			}
			return e.value
		}
	}
	return nil
}

// valueOf returns the node of a key's value without taking it, or nil.
func (m *mapping) valueOf(key string) ast.Node {
	for i := range m.entries {
		if m.entries[i].key == key {
			return m.entries[i].value
		}
	}
	return nil
}

// has reports whether a key is there.
func (m *mapping) has(key string) bool {
	return slices.ContainsFunc(m.entries, func(e entry) bool { return e.key == key })
}

// text returns the text of a key's value, or "" when it is absent or no text.
func (m *mapping) text(key string) (string, ast.Node) {
	n := m.take(key)
	if n == nil {
		return "", nil
	}
	s, ok := scalar(n)
	if !ok || s == "" {
		m.add(n, m.child(key), "must be a text")
		return "", nil
	}
	return s, n
}

// texts returns the texts of a key's value, a sequence.
func (m *mapping) texts(key string) ([]string, []ast.Node) {
	n := m.take(key)
	if n == nil {
		return nil, nil
	}
	seq, ok := n.(*ast.SequenceNode)
	if !ok || len(seq.Values) == 0 {
		m.add(n, m.child(key), "must be a list, as [a, b]")
		return nil, nil
	}
	var list []string
	for _, v := range seq.Values {
		s, ok := scalar(v)
		if !ok || s == "" {
			m.add(v, m.child(key), "must be a list of texts")
			return nil, nil
		}
		list = append(list, s)
	}
	return list, seq.Values
}

// whole returns the whole number of a key's value from least to most, or otherwise when it is absent or wrong.
func (m *mapping) whole(key string, least, most, otherwise int) int {
	n := m.take(key)
	if n == nil {
		return otherwise
	}
	if i, ok := n.(*ast.IntegerNode); ok {
		switch v := i.Value.(type) {
		case int64:
			if v >= int64(least) && v <= int64(most) {
				return int(v)
			}
		case uint64:
			if least >= 0 && v >= uint64(least) && v <= uint64(most) {
				return int(v)
			}
		}
	}
	m.add(n, m.child(key), "must be a whole number from %d to %d, not %s", least, most, clean(n.String()))
	return otherwise
}

// choice returns the index of a key's value among options, or otherwise.
func (m *mapping) choice(key string, otherwise int, options ...string) int {
	s, n := m.text(key)
	if n == nil {
		return otherwise
	}
	if i := slices.Index(options, s); i >= 0 {
		return i
	}
	m.add(n, m.child(key), "must be one of %s, not %q", strings.Join(options, ", "), s)
	return otherwise
}

// refusePlanned reports keys that will exist but do not yet.
func (m *mapping) refusePlanned(keys ...string) {
	for i := range m.entries {
		if e := &m.entries[i]; slices.Contains(keys, e.key) {
			e.taken = true
			m.add(e.at, m.child(e.key), "is planned, not built yet")
		}
	}
}

// close reports the keys that nobody took. known names those that there are.
func (m *mapping) close(known ...string) {
	for _, e := range m.entries {
		if !e.taken {
			m.add(e.at, m.child(e.key), "is not a key here; there are %s", strings.Join(known, ", "))
		}
	}
}

// scalar returns the text of a scalar as it is written, without quotes.
func scalar(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	case *ast.MappingKeyNode:
		return scalar(n.Value)
	}
	return "", false
}

// clean shortens a node's text for a message.
func clean(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 40 {
		s = string(r[:40]) + "…"
	}
	return s
}
