package command

import (
	"context"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/cursor"
	"oxbow/internal/exec"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
	"oxbow/internal/query"
	"oxbow/internal/statement"
)

// Data answers the commands that touch data. A command on a plain collection goes to its database's backend as it came; one
// on a collection with a layout is planned and executed.
type Data struct {
	Catalog *catalog.Catalog
	Exec    *exec.Executor
	Cursors *cursor.Registry
	Now     func() time.Time
	Upkeep  Upkeep

	timestamps   statement.Timestamps
	transactions transactions
	deployments  deployments
	table        *Table // knows who may do what
	guard        *guard
}

// RegisterData puts the data commands into the table.
func (t *Table) RegisterData(d *Data) {
	d.table, d.deployments, d.guard = t, deploymentsOf(d.Exec), newGuard()
	register := func(name string, e Entry) {
		e.Handler = d.exchanging(e.Handler)
		t.Register(name, e)
	}
	read := func(name string, h Handler, help string, aliases ...string) {
		register(name, Entry{Handler: h, Stable: true, Reads: true, Help: help, Aliases: aliases})
	}
	write := func(name string, h Handler, help string, aliases ...string) {
		register(name, Entry{Handler: h, Stable: true, Writes: true, Help: help, Aliases: aliases})
	}
	defer t.takeTransactions(d)
	read("find", d.find, "documents that match a filter")
	register("getMore", Entry{Handler: d.getMore, Stable: true, Reads: true, Awaits: true, Help: "the next batch of a cursor"})
	register("killCursors", Entry{Handler: d.killCursors, Stable: true, Help: "closes cursors"})
	read("count", d.count, "the number of documents that match")
	register("distinct", Entry{Handler: d.distinct, Reads: true, Help: "the distinct values of a field"})
	read("aggregate", d.aggregate, "runs an aggregation pipeline")
	read("explain", d.explain, "how a command would be run")
	write("insert", d.insert, "adds documents")
	write("update", d.update, "changes documents")
	write("delete", d.delete, "removes documents")
	write("findAndModify", d.findAndModify, "changes or removes one document and returns it", "findandmodify")
	write("create", d.create, "makes a collection")
	write("drop", d.drop, "removes a collection")
	write("dropDatabase", d.dropDatabase, "removes a database")
	write("createIndexes", d.createIndexes, "makes indexes")
	write("dropIndexes", d.dropIndexes, "removes indexes", "deleteIndexes")
	register("listIndexes", Entry{Handler: d.listIndexes, Stable: true, Help: "the indexes of a collection"})
	register("listCollections", Entry{Handler: d.listCollections, Stable: true, Help: "the collections of a database"})
	register("listDatabases", Entry{Handler: d.listDatabases, Stable: true, AdminOnly: true, Help: "the databases"})
	register("renameCollection", Entry{Handler: d.renameCollection, AdminOnly: true, Writes: true, Help: "gives a collection another name"})
	register("collStats", Entry{Handler: d.collStats, Aliases: []string{"collstats"}, Help: "figures of a collection"})
	register("dbStats", Entry{Handler: d.dbStats, Aliases: []string{"dbstats"}, Help: "figures of a database"})
	register("validate", Entry{Handler: d.validate, Help: "checks a collection's indexes against its documents"})
	t.RegisterPartitions(d)
	t.deps.Fallback = d.exchanging(d.unknown)
}

// view is one command's view: the catalog as it is read once a command, and the source that the command names.
type view struct {
	snapshot *catalog.Snapshot
	source   plan.Source
}

// collection finds what a command's own argument names. The database that holds the catalog is closed to clients.
func (d *Data) collection(req *Request) (view, error) {
	if req.Argument.Type != bson.TypeString {
		return view{}, mongoerr.New(mongoerr.InvalidNamespace, "collection name has invalid type %s", bson.TypeName(req.Argument.Type))
	}
	name := same(&req.names().collection, req.Argument)
	a, err := d.known(req.Database, name, req.names().of(req.Database, name))
	if err != nil {
		return a, err
	}
	if err := d.enter(req); err != nil {
		return a, err
	}
	d.reading(req, a.snapshot, a.source.Database, a.source.Name)
	if a.source.Collection != nil {
		req.composed = true
		if err := d.Catalog.Check(); err != nil {
			return a, err
		}
		err = refuseSnapshot(req)
	}
	return a, err
}

func (d *Data) named(database, name string) (view, error) {
	return d.known(database, name, database+"."+name)
}

// known is named where the namespace, "database.name", is put together already.
func (d *Data) known(database, name, namespace string) (view, error) {
	if err := d.open(database); err != nil {
		return view{}, err
	}
	s := d.Catalog.Snapshot()
	src := plan.Source{Database: database, Name: name, Collection: s.Collection(namespace)}
	if src.Collection == nil {
		src.Backend = s.BackendFor(database)
	} else {
		src.ByPartition = src.Collection.ByPartition
	}
	return view{s, src}, nil
}

// open refuses the catalog's own database.
func (d *Data) open(database string) error {
	if database == d.Catalog.Database() {
		return mongoerr.New(mongoerr.Unauthorized, "not authorized on %s: the database holds the catalog", database)
	}
	return nil
}

// writable refuses writes to a partition by its physical name: only the collection's layout may place documents.
func (a view) writable() error {
	if a.source.Collection != nil {
		return nil
	}
	c, p := a.snapshot.Physical(a.source.Backend, a.source.Database, a.source.Name)
	if c == nil {
		return nil
	}
	return mongoerr.New(mongoerr.CommandNotSupported, "%s is a partition of %s and read-only by its own name", p.Name(), c.Namespace())
}

// env is what compiled queries get to know.
func (d *Data) env() query.Env { return query.Env{NowMillis: d.Now().UnixMilli()} }

// envWith is env with a command's let variables evaluated.
func (d *Data) envWith(let bson.Document) (query.Env, error) {
	env := d.env()
	if len(let) <= len(emptyDocument) {
		return env, nil
	}
	values, err := query.EvalLet(let, env)
	env.Let = values
	return env, err
}

func newObjectID() [12]byte { return driver.NewObjectID() }

func (d *Data) fill() statement.Fill {
	return statement.Fill{NewID: newObjectID, NewTimestamp: func() uint64 { return d.timestamps.Next(d.Now()) }}
}

// forward sends the command as it came to the backend of a plain collection and gives back its reply.
func (d *Data) forward(ctx context.Context, name string, req *Request, reply *Reply) (err error) {
	reply.Document, err = d.Exec.Forward(ctx, name, &backend.Request{Body: req.Body, Sequences: req.Sequences, Memory: reply.Memory})
	return err
}

// forwardCursor is forward for commands whose reply may leave a cursor open on the backend; the client gets one of Oxbow's own.
func (d *Data) forwardCursor(ctx context.Context, src plan.Source, req *Request, reply *Reply) error {
	if err := d.forwardRead(ctx, src.Backend, req, reply); err != nil {
		return err
	}
	c, err := backend.ParseCursorReply(reply.Document)
	if err != nil || c.ID == 0 {
		return nil // an error reply is the backend's answer, and goes to the client as it is
	}
	target := plan.Target{Backend: src.Backend, Namespace: backend.Namespace{Database: src.Database, Collection: cursorCollection(c.Namespace(), src)}}
	id, err := d.Cursors.Add(d.Exec.Relay(target, c.ID), d.cursorOptions(req, c.Namespace()), d.Now())
	if err != nil {
		return err
	}
	c.SetID(id)
	return nil
}

// cursorCollection is the collection of a cursor's namespace: $cmd.listCollections and the like differ from the command's.
func cursorCollection(ns string, src plan.Source) string {
	if prefix := src.Database + "."; len(ns) > len(prefix) && ns[:len(prefix)] == prefix {
		return ns[len(prefix):]
	}
	return src.Name
}

func (d *Data) cursorOptions(req *Request, ns string) cursor.Options {
	o := cursor.Options{Namespace: ns, Command: req.Body, NoTimeout: truthy(req.Body, "noCursorTimeout")}
	if req.Session != nil {
		id := *req.Session
		o.Session = &id
	}
	if req.Conn != nil {
		o.User = req.Conn.User
	}
	return o
}
