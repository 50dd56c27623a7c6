package config

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile is more than any configuration has: a file beyond it is a mistake.
const maxFile = 1 << 20

// Load reads and checks a file.
func Load(file string) (*Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return Parse(file, data)
}

// Parse checks the bytes of a file; name stands in messages. The error joins one *Error for each thing that is wrong. What a file leaves out
// is as in Default.
func Parse(name string, data []byte) (*Config, error) {
	r := &report{file: name}
	root := r.document(data)
	if len(r.list) > 0 {
		return nil, r.err()
	}
	cfg := Default()
	cfg.File = name
	m := openMapping(r, root, "")
	listenAt := cfg.readListen(m)
	cfg.readBackends(m)
	cfg.readMemory(m)
	cfg.readCatalog(m)
	cfg.readDatabases(m)
	cfg.readSharing(m)
	cfg.readCollections(m)
	cfg.readJobs(m)
	cfg.readUsers(m)
	cfg.checkBeyond(m, listenAt)
	cfg.readTLS(m)
	cfg.checkCertificates(m)
	cfg.readHTTP(m)
	cfg.readSlow(m)
	cfg.readThrottle(m)
	cfg.KillAbandoned = m.choice("abandoned", 0, "finish", "kill") == 1
	cfg.readReads(m)
	cfg.readGuard(m, "", cfg.backendNames())
	cfg.readLimits(m)
	cfg.Fanout = m.whole("fanout", 1, mostFanout, DefaultFanout)
	m.close("listen", "limits", "fanout", "memory", "http", "slow", "abandoned", "reads", "guard", "throttle", "tls", "auth", "users", "backends", "catalog", "lease", "longest", "databases", "collections", "jobs")
	if err := r.err(); err != nil {
		return nil, err
	}
	return cfg, nil
}

// document parses the bytes and returns the root node of the only document, nil for an empty file.
func (r *report) document(data []byte) (root ast.Node) {
	if len(data) > maxFile {
		r.add(nil, "", "the file has %d bytes; %d is the most", len(data), maxFile)
		return nil
	}
	// The YAML library is not known to be free of panics on any input.
	defer func() {
		if p := recover(); p != nil {
			root = nil
			r.add(nil, "", "is not YAML: %v", p)
		}
	}()
	file, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		e := &Error{File: r.file, Line: 1, Column: 1, Message: "is not YAML: " + err.Error()}
		var at yaml.Error
		if errors.As(err, &at) {
			e.Message = "is not YAML: " + at.GetMessage()
			if t := at.GetToken(); t != nil && t.Position != nil {
				e.Line, e.Column = t.Position.Line, t.Position.Column
			}
		}
		r.list = append(r.list, e)
		return nil
	}
	for _, doc := range file.Docs {
		switch {
		case doc == nil || doc.Body == nil:
		case root != nil:
			r.add(doc.Body, "", "a second document begins here; a configuration is one")
			return nil
		default:
			root = doc.Body
			if _, comment := root.(*ast.CommentGroupNode); comment {
				root = nil
			}
		}
	}
	return root
}

func (cfg *Config) readMemory(m *mapping) {
	at := m.valueOf("memory")
	cfg.Memory = m.size("memory")
	if cfg.Memory == 0 {
		return
	}
	if _, err := cfg.DivideMemory(0); err != nil {
		m.add(at, "memory", "%v", err)
	}
}

func (cfg *Config) readBackends(m *mapping) {
	n := m.take("backends")
	if n == nil {
		return
	}
	list := openMapping(m.report, n, "backends")
	if len(list.entries) == 0 && len(m.list) == 0 {
		m.add(n, "backends", "names no backend")
	}
	cfg.Backends, cfg.Default = nil, ""
	dirs := map[string]string{}
	for _, e := range list.entries {
		b := readBackend(m.report, e, list.child(e.key))
		b.Name = e.key
		if b.Embedded != nil {
			if other, taken := dirs[b.Embedded.Dir]; taken {
				m.add(e.at, list.child(e.key), "has the folder of backend %s", other)
			}
			dirs[b.Embedded.Dir] = b.Name
		}
		cfg.Backends = append(cfg.Backends, b)
	}
}

func readBackend(r *report, e entry, path string) Backend {
	m := openMapping(r, e.value, path)
	var b Backend
	dir, _ := m.text("embedded")
	uri, at := m.text("uri")
	switch {
	case m.has("embedded") == m.has("uri"):
		r.add(e.at, path, "needs one of embedded (a folder) and uri (a MongoDB connection string)")
	case m.has("embedded"):
		b.Embedded = &Embedded{Dir: dir, CacheBytes: m.size("cache"), MemtableBytes: m.size("memtable")}
		b.Embedded.SyncAlways = m.choice("sync", 0, "interval", "always") == 1
	default:
		b.URI = uri
		if at != nil && !isConnectionString(uri) {
			r.add(at, m.child("uri"), "is not a connection string that begins with mongodb:// or mongodb+srv://")
		}
	}
	m.close("embedded, with cache, memtable and sync", "uri")
	return b
}

// readCatalog reads the name of the catalog's database.
func (cfg *Config) readCatalog(m *mapping) {
	text, n := m.text("catalog")
	if n == nil {
		return
	}
	if err := checkDatabaseName(text); err != nil {
		m.add(n, "catalog", "%v", err)
	} else if slices.Contains(reserved, text) {
		m.add(n, "catalog", "the catalog can't be in database %q, which is reserved", text)
	}
	cfg.Catalog = text
}

// readDatabase returns the name of the backend that a database's entry names, by itself or with how the database is read.
func (cfg *Config) readDatabase(r *report, e entry, path string) (backend string, ok bool) {
	if name, ok := scalar(e.value); ok {
		return name, true
	}
	m := openMapping(r, e.value, path)
	backend, at := m.text("backend")
	cfg.readReading(m, e.key, []string{backend})
	cfg.readGuard(m, e.key, []string{backend})
	m.close("backend", "read", "reads", "guard")
	return backend, at != nil
}

func (cfg *Config) readDatabases(m *mapping) {
	list := openMapping(m.report, m.take("databases"), "databases")
	cfg.Databases = map[string]string{}
	for _, e := range list.entries {
		name, ok := cfg.readDatabase(m.report, e, list.child(e.key))
		if !ok || cfg.Backend(name) == nil {
			m.add(e.value, list.child(e.key), "must be the name of a backend, not %q", name)
			continue
		}
		if e.key == "*" {
			cfg.Default = name
			continue
		}
		if err := checkDatabaseName(e.key); err != nil {
			m.add(e.at, list.child(e.key), "%v", err)
		}
		cfg.Databases[e.key] = name
	}
	switch {
	case cfg.Default != "" || list.has("*"):
	case len(cfg.Backends) == 1:
		cfg.Default = cfg.Backends[0].Name
	case len(cfg.Backends) > 1:
		m.add(m.at, "databases", "must say with \"*\" which of the %d backends holds all other databases", len(cfg.Backends))
	}
}
