package config

import (
	"cmp"
	"time"

	"oxbow/internal/auth"
	"oxbow/internal/route"
	"oxbow/internal/throttle"
)

// Config is a checked configuration.
type Config struct {
	File        string // where it came from, for messages; "" for the default
	Memory      int64  // what the process should stay below, in bytes; 0: by the machine, see DivideMemory
	Listen      string // host:port, or the absolute path of a Unix socket
	Backends    []Backend
	Databases   map[string]string // database → backend, without "*"
	Default     string            // the backend of databases that Databases does not name ("*"); it holds the catalog
	Catalog     string            // the database of the catalog, closed to clients; "": DefaultCatalog
	Lease       time.Duration     // of a gateway on a catalog that others may share
	Longest     time.Duration     // what an insert or upsert may take on one partition where others may share the catalog
	Collections []Collection      // in the order of the file
	Jobs        []Job             // in the order of the file
	Users       []auth.User       // in the order of the file; createUser makes others
	Authorize   bool              // commands need the roles of a user ("auth: on")
	TLS         *TLS              // nil: connections are not encrypted
	HTTP        *HTTP             // nil: not served
	Slow        time.Duration     // commands that take as long are logged; 0: none
	Fanout      int               // commands to partitions that all commands have under way at a time, beyond one each
	Limits      Limits            // of what clients may take
	Reads       Reads             // of collections that say nothing else
	Throttle    throttle.Settings // of the jobs' pace
	// KillAbandoned ends a command that changes documents when its client is gone ("abandoned: kill").
	KillAbandoned bool

	readings map[string]Reading         // by "db.coll", database, or "*"; see Reading
	guards   map[string]Guard           // by "db.coll", database, "*", or "" for all; see Guard
	guarded  [len(guardedCommands)]bool // whether any of guards may concern a command of that kind
}

// HTTP is where operators' tools are served.
type HTTP struct {
	Listen    string // host:port
	TokenFile string // a file with the token that is asked for; "": none, on loopback only
}

// TLS are the files of an encrypted listener, PEM all.
type TLS struct {
	Certificate string // with the chain behind it
	Key         string
	Clients     string // authorities of which every client must show a certificate; "": none is asked for
}

// Backend is one deployment: Embedded or a URI.
type Backend struct {
	Name     string
	Embedded *Embedded // nil for a remote one
	URI      string    // a MongoDB connection string, "" for an embedded one
}

// Embedded are the options of an embedded engine.
type Embedded struct {
	Dir           string // as written in the file: relative to the working directory
	CacheBytes    int64  // block cache; 0: by the process's memory
	MemtableBytes int64  // one memtable; 0: by the process's memory
	SyncAlways    bool   // every write waits for its sync ("sync: always")
}

// Collection is one collection with a layout.
type Collection struct {
	Database string
	Name     string
	Layout   route.Layout
	Hold     time.Duration // how long a hidden partition is kept before it is dropped
	Over     []string      // backends that partitions are spread over; at least one
	Fanout   int           // partitions that one command is sent to at a time
	As       As
	Ordered  Ordered
	Template Template // names of partitions
}

// Ordered says how far the order of ordered writes goes.
type Ordered uint8

// The two answers: over the collection as in MongoDB, where a server behind takes a command for each run of neighbours; or within each partition.
const (
	OrderedCollection Ordered = iota
	OrderedPartition
)

// As says what a partition of a time layout is.
type As uint8

// The two kinds of partitions: a collection beside the others, or a collection in a database of its own.
const (
	AsCollection As = iota
	AsDatabase
)

// What holds where the file says nothing.
const (
	DefaultListen = "127.0.0.1:27017"
	DefaultAhead  = 2
	DefaultHold   = time.Hour
	DefaultSlow   = 100 * time.Millisecond // MongoDB's slowms
	// DefaultFanout leaves connections of a pool, which are 100 by default, to commands that go to one partition.
	DefaultFanout = 64
	// DefaultWidth is the fanout of a layout.
	DefaultWidth = 16
	DefaultLease = 10 * time.Second
	// DefaultLongest is more than the largest message takes on a server that is well, and little enough for a drop to wait.
	DefaultLongest = time.Minute
	// DefaultCatalog is the database of the catalog.
	DefaultCatalog = "oxbow"
)

// Namespace returns "database.collection".
func (c *Collection) Namespace() string { return c.Database + "." + c.Name }

// CatalogDatabase returns the database of the catalog.
func (c *Config) CatalogDatabase() string { return cmp.Or(c.Catalog, DefaultCatalog) }

// Shared reports whether other gateways may use the catalog as well: an embedded one is this process's alone.
func (c *Config) Shared() bool {
	b := c.Backend(c.Default)
	return b != nil && b.Embedded == nil
}

// BackendFor returns the name of the backend that serves a plain database.
func (c *Config) BackendFor(database string) string {
	if name, ok := c.Databases[database]; ok {
		return name
	}
	return c.Default
}

// Backend returns the backend with a name, or nil.
func (c *Config) Backend(name string) *Backend {
	for i := range c.Backends {
		if c.Backends[i].Name == name {
			return &c.Backends[i]
		}
	}
	return nil
}

// Collection returns the collection of a namespace, or nil.
func (c *Config) Collection(ns string) *Collection {
	for i := range c.Collections {
		if c.Collections[i].Namespace() == ns {
			return &c.Collections[i]
		}
	}
	return nil
}

// Default returns the configuration without a file: an embedded engine in ./data, served on 127.0.0.1:27017.
func Default() *Config {
	return &Config{
		Listen:   DefaultListen,
		Slow:     DefaultSlow,
		Fanout:   DefaultFanout,
		Limits:   DefaultLimits,
		Lease:    DefaultLease,
		Longest:  DefaultLongest,
		Backends: []Backend{{Name: "local", Embedded: &Embedded{Dir: "./data"}}},
		Default:  "local",
	}
}
