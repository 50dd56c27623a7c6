package command

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
	"oxbow/internal/catalog"
	"oxbow/internal/mongoerr"
	"oxbow/internal/query"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// listDatabases answers listDatabases. A database that only holds partitions shows as the database of their collection; as itself too with
// Oxbow's own option showPartitions.
func (d *Data) listDatabases(ctx context.Context, req *Request, reply *Reply) error {
	l, err := statement.ParseListDatabases(req.Body)
	if err != nil {
		return err
	}
	filter, err := query.ParseFilter(l.Filter, d.env())
	if err != nil {
		return err
	}
	shows, err := d.shownDatabases(req, l)
	if err != nil {
		return err
	}
	sizes, err := d.databaseSizes(ctx, l.Partitions)
	if err != nil {
		return err
	}
	maps.DeleteFunc(sizes, func(name string, _ int64) bool { return !shows(name) })
	list := bsoncore.NewArrayBuilder()
	var total int64
	for _, name := range slices.Sorted(maps.Keys(sizes)) {
		doc := databaseDocument(name, sizes[name])
		ok, err := filter.Match(doc)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if l.NameOnly {
			doc = namesOnly([]bson.Document{doc})[0]
		}
		list.AppendDocument(doc)
		total += sizes[name]
	}
	reply.Elements = bsoncore.AppendArrayElement(reply.Elements, "databases", list.Build())
	if !l.NameOnly {
		reply.Elements = bsoncore.AppendInt64Element(reply.Elements, "totalSize", total)
		reply.Elements = bsoncore.AppendInt64Element(reply.Elements, "totalSizeMb", total>>20)
	}
	return nil
}

// shownDatabases says which databases the client may see: all with the action listDatabases, else those that its user may do something with
// (https://www.mongodb.com/docs/v7.0/reference/command/listDatabases/).
func (d *Data) shownDatabases(req *Request, l *statement.ListDatabases) (func(string) bool, error) {
	all := d.table.may(req.Conn, "", auth.ListDatabases)
	if l.Authorized != nil {
		if !*l.Authorized && !all {
			return nil, mongoerr.New(mongoerr.Unauthorized, "Insufficient permissions to list all databases")
		}
		all = !*l.Authorized
	}
	user := d.table.userOf(req.Conn)
	if all || user == nil {
		return func(string) bool { return true }, nil
	}
	return func(name string) bool { return user.Privileges().OnDatabase(name) != 0 }, nil
}

func databaseDocument(name string, size int64) bson.Document {
	at, dst := bsoncore.AppendDocumentStart(nil)
	dst = bsoncore.AppendStringElement(dst, "name", name)
	dst = bsoncore.AppendInt64Element(dst, "sizeOnDisk", size)
	dst = bsoncore.AppendBooleanElement(dst, "empty", false)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	return dst
}

// databaseSizes sums the bytes on disk by database over all backends.
func (d *Data) databaseSizes(ctx context.Context, showPartitions bool) (map[string]int64, error) {
	s := d.Catalog.Snapshot()
	shown := databases{snapshot: s, owners: partitionDatabases(s), showPartitions: showPartitions, sizes: make(map[string]int64)}
	for _, c := range s.Collections("") {
		if c.Created {
			shown.sizes[c.Database] += 0
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Exec.Backends)) {
		reply, err := d.runOn(ctx, physical{name, "admin"}, "listDatabases", nil)
		if err != nil {
			return nil, err
		}
		list, _ := bson.Get(reply, "databases")
		it := bson.Elements(list.Data)
		for it.Next() {
			if err := d.addDatabase(ctx, &shown, physical{name, nameOf(it.Value().Data)}, it.Value().Data); err != nil {
				return nil, err
			}
		}
	}
	return shown.sizes, nil
}

// databases are the databases that listDatabases shows, while their sizes are being added up.
type databases struct {
	snapshot       *catalog.Snapshot
	owners         map[physical]string // see partitionDatabases
	showPartitions bool
	sizes          map[string]int64
}

// partitionDatabases maps each database that holds partitions to the database of their collection; where there are several, to the first by name.
func partitionDatabases(s *catalog.Snapshot) map[physical]string {
	owners := make(map[physical]string)
	for _, c := range s.Collections("") {
		for i := range c.All {
			at := physical{c.All[i].Backend, c.All[i].Database}
			if owner, ok := owners[at]; !ok || cmp.Less(c.Database, owner) {
				owners[at] = c.Database
			}
		}
	}
	return owners
}

// addDatabase adds one physical database's size to the database that it shows as.
func (d *Data) addDatabase(ctx context.Context, to *databases, p physical, doc bson.Document) error {
	if p.database == d.Catalog.Database() {
		return nil
	}
	v, _ := bson.Get(doc, "sizeOnDisk")
	size, _ := v.AsInt64OK()
	owner, holds := to.owners[p]
	if !holds || owner == p.database || to.showPartitions {
		to.sizes[p.database] += size
		return nil
	}
	plain, _, err := d.plainCollections(ctx, view{snapshot: to.snapshot}, p.backend, p.database)
	if len(plain) > 0 {
		to.sizes[p.database] += 0
	}
	to.sizes[owner] += size
	return err
}
