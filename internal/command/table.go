package command

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"oxbow/internal/auth"
	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/cursor"
	"oxbow/internal/memory"
	"oxbow/internal/mongoerr"
)

// Handler answers one command. It appends the elements of its answer to reply.Elements (ok follows by itself) or sets
// reply.Document. An error becomes the reply: a *mongoerr.Error as it is, any other as InternalError.
type Handler func(ctx context.Context, req *Request, reply *Reply) error

// Reply is where a handler writes its answer.
type Reply struct {
	// Elements holds what the envelope wrote and behind it the handler's elements: append to it (bsoncore.Append…Element), never shorten it.
	Elements []byte
	// Document, when set, is the whole answer of a backend, its ok included; Elements is then ignored. It must not alias the request.
	Document bson.Document
	// Again, when the client allows an exhaust stream, makes the server run the command once more without being asked:
	// with the body Next, or with the same one where that is nil.
	Again bool
	Next  bson.Document
	// Memory is charged for what the reply holds, while it is being made; nil: it has no limit. It is the caller's to close, when the reply is sent.
	Memory *memory.Account
}

// Entry is one command of the table.
type Entry struct {
	Handler Handler
	Aliases []string // other names of the same command
	Help    string   // one line, for listCommands

	AdminOnly bool // refused on any other database
	Stable    bool // in version 1 of the Stable API, so allowed with apiStrict
	Reads     bool // takes a read concern of any level; others take only local and available
	Writes    bool // goes on when its client is gone (but see KillAbandoned), and its failures may be retried by a driver
	// InTransactions: it may be a statement of a transaction.
	InTransactions bool
	// EndsTransaction: it ends one, so that only it is to be sent again after a failure.
	EndsTransaction bool
	Awaits          bool // maxTimeMS is how long it may wait for something to answer, and no limit to be put on it here
	NoSession       bool // an lsid is taken but starts no session (hello, ping and the like, and the session commands)
	Secret          bool // its body holds what nobody else may see: currentOp shows its name only
	NoTarget        bool // its first field is a name, but not a collection's
	Unlisted        bool // does not show in currentOp: it waits on behalf of a driver's monitor
	// Fields are the fields that it takes beside its name and the generic arguments; any other one is error 40415. Nil: the handler checks
	// for itself; an empty list: none.
	Fields []string

	name string
}

// Interceptor looks at a request before its command's own handler and returns the handler to run instead, or nil.
type Interceptor func(req *Request) Handler

// Deps are what the table and the gateway's own commands need.
type Deps struct {
	Log *slog.Logger
	// RecentLog keeps lines for getLog; nil: getLog has none.
	RecentLog *RecentLog
	Now       func() time.Time
	Sessions  *cursor.Sessions
	Cursors   *cursor.Registry
	Counters  *Counters
	Server    ServerInfo
	// Servers tells what all servers behind the gateway can do; nil: what this process can.
	Servers func() backend.Servers
	Memory  *memory.Budget // for serverStatus; nil: it has no limit
	Users   Users          // nil: there are none and can be none
	// Authorize makes every command need the roles of a user who has logged in; without it, everybody may do everything.
	Authorize bool
	// Fallback answers commands that are not in the table; nil: they are errors of code CommandNotFound.
	Fallback Handler
	// KillAbandoned interrupts also commands that change documents when their client is gone; else they go on to their end.
	KillAbandoned bool
	// Slow is the time from which on a command is logged; 0: none is.
	Slow time.Duration
	// Sections are further parts of serverStatus, from the engine for example.
	Sections []StatusSection
}

// Observer notes commands. Its methods run while the client waits.
type Observer interface {
	// Command notes a command of the table, or one that it doesn't have, by its name; code is 0 when it succeeded.
	Command(name string, took time.Duration, code mongoerr.Code)
}

// ServerInfo is what the commands tell about this process.
type ServerInfo struct {
	Version string    // MongoDB's version that is answered as where no server behind is older, such as "7.0.14"
	Build   string    // Oxbow's own
	Host    string    // "name:port", the machine's name
	Address string    // where it listens, as config.shards gives it
	Started time.Time // with a monotonic clock reading
	// Memory is the machine's, MemoryLimit what the process may have of it at most, in bytes; 0: not known.
	Memory, MemoryLimit int64
	Argv                []string
	Settings            bson.Document // the configuration as getCmdLineOpts shows it, or nil
}

// StatusSection appends one element named Name to serverStatus.
type StatusSection struct {
	Name   string
	Append func(dst []byte) []byte // appends the elements of the section's document
}

// Table is the commands by name. Register everything before the first Run; from then on it is safe for concurrent use.
type Table struct {
	deps         Deps
	byName       map[string]*Entry
	interceptors map[string][]Interceptor
	operations   *Operations
	topology     topology
	usages       usages
	needs        map[string]need
	observer     Observer // nil: nobody is told of commands
	forget       func()   // ends what is open of sessions that are no more
	limits       limits
}

// New returns a table with the gateway's own commands.
func New(deps Deps) *Table {
	if deps.Users == nil {
		deps.Users = nobody{}
	}
	t := &Table{
		deps:         deps,
		byName:       make(map[string]*Entry),
		interceptors: make(map[string][]Interceptor),
		operations:   newOperations(deps.KillAbandoned),
		topology:     newTopology(),
		usages:       usages{by: make(map[string]*usage)},
		needs:        needsByCommand(),
		forget:       func() {},
	}
	t.limits.users = make(map[auth.UserName]*userLoad)
	t.SetLimits(Limits{})
	t.registerGateway()
	return t
}

// Register puts a command, with its aliases, into the table, in place of what stands there under these names.
func (t *Table) Register(name string, e Entry) {
	e.name = name
	t.byName[name] = &e
	for _, alias := range e.Aliases {
		t.byName[alias] = &e
	}
}

// Intercept adds an interceptor for a command, asked before those that are already there. It also serves a command that
// is not registered, as far as it takes the request.
func (t *Table) Intercept(name string, i Interceptor) {
	t.interceptors[name] = slices.Insert(t.interceptors[name], 0, i)
}

// Operations returns the running commands.
func (t *Table) Operations() *Operations { return t.operations }

// Drain makes every later command fail with ShutdownInProgress and wakes the waiting hellos. It returns at once.
func (t *Table) Drain() { t.topology.drain() }

// Sweep ends the sessions and cursors that were idle for too long, those of running commands excepted; the server calls it now and then.
func (t *Table) Sweep() {
	now := t.deps.Now()
	for _, id := range t.operations.sessions() {
		// One that was ended meanwhile begins anew, as with any use.
		if err := t.deps.Sessions.Touch(id, now); err != nil {
			t.deps.Log.Warn("cannot keep the session of a running command", "error", err)
		}
	}
	if expired := t.deps.Sessions.Sweep(now); len(expired) > 0 {
		t.deps.Cursors.KillSessions(expired...)
	}
	t.forget()
	t.deps.Cursors.Sweep(now)
}

// Close closes every cursor, which frees what they hold of the backends; the server calls it when the last connection has ended.
func (t *Table) Close() { t.deps.Cursors.Close() }

// Names returns the names of the commands, aliases left out, in their order.
func (t *Table) Names() []string {
	var names []string
	for _, e := range t.entries() {
		names = append(names, e.name)
	}
	return names
}

// Observe sets who is told of every command that was answered. Call it before the first Run.
func (t *Table) Observe(o Observer) { t.observer = o }

// entries returns the commands in the order of their names, aliases left out.
func (t *Table) entries() []*Entry {
	var out []*Entry
	for name, e := range t.byName {
		if name == e.name {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *Entry) int { return strings.Compare(a.name, b.name) })
	return out
}
