package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/deployment"
	"oxbow/internal/mongoerr"
)

// Deployment is whose members are asked.
type Deployment interface {
	Members(ctx context.Context) ([]deployment.Member, error)
	On(ctx context.Context, host string) (backend.Backend, error)
}

// Silent is a member that did not tell what it runs.
type Silent struct {
	Member string
	Why    string
}

// List returns what the members of a deployment run, the oldest first, and which members did not tell. The routers of a sharded cluster are left out:
// what they run runs on its shards.
func List(ctx context.Context, d Deployment) ([]Operation, []Silent, error) {
	members, err := d.Members(ctx)
	if err != nil {
		return nil, nil, err
	}
	var all []Operation
	var silent []Silent
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, m := range asked(members) {
		asking.Go(func() {
			list, err := on(ctx, d, m.Host)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, list...)
			if err != nil {
				silent = append(silent, Silent{m.Host, err.Error()})
			}
		})
	}
	asking.Wait()
	slices.SortStableFunc(all, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(b.Age, a.Age), cmp.Compare(a.Member, b.Member), cmp.Compare(a.Number(), b.Number()))
	})
	slices.SortFunc(silent, func(a, b Silent) int { return cmp.Compare(a.Member, b.Member) })
	return all, silent, ctx.Err()
}

// asked are the members that run what is to be seen: those that hold data, or the routers where there are no others.
func asked(members []deployment.Member) []deployment.Member {
	holding := slices.DeleteFunc(slices.Clone(members), func(m deployment.Member) bool { return !m.HoldsData() })
	if len(holding) > 0 {
		return holding
	}
	return slices.DeleteFunc(slices.Clone(members), func(m deployment.Member) bool { return m.State == deployment.Arbiter })
}

// on asks one member, for the operations of all users where it may, else for its own user's.
func on(ctx context.Context, d Deployment, host string) ([]Operation, error) {
	b, err := d.On(ctx, host)
	if err != nil {
		return nil, err
	}
	list, err := currentOps(ctx, b, true)
	if mongoerr.Is(err, mongoerr.Unauthorized) {
		list, err = currentOps(ctx, b, false)
	}
	if err != nil {
		return nil, fmt.Errorf("ask what it runs: %w", err)
	}
	var all []Operation
	for _, doc := range list {
		o := Parse(host, doc)
		if o.ID.Type != 0 {
			all = append(all, o)
		}
	}
	return all, nil
}

// currentOps reads $currentOp, or where a server does not know that the command of the same name, which all have had.
func currentOps(ctx context.Context, b backend.Backend, all bool) ([]bson.Document, error) {
	stage := bsoncore.NewDocumentBuilder().AppendDocument("$currentOp", bsoncore.NewDocumentBuilder().AppendBoolean("allUsers", all).Build()).Build()
	body := backend.Command("admin", func(dst []byte) []byte {
		dst = bsoncore.AppendInt32Element(dst, "aggregate", 1)
		dst = bsoncore.AppendArrayElement(dst, "pipeline", bsoncore.NewArrayBuilder().AppendDocument(stage).Build())
		return bsoncore.BuildDocumentElement(dst, "cursor", bsoncore.AppendInt32Element(nil, "batchSize", 10_000))
	})
	reply, err := backend.Ask(ctx, b, body)
	if err == nil {
		return readOn(ctx, b, reply)
	}
	var refused *mongoerr.Error
	if !errors.As(err, &refused) || refused.Code == mongoerr.Unauthorized {
		return nil, err
	}
	reply, err = backend.Ask(ctx, b, backend.Command("admin", func(dst []byte) []byte {
		dst = bsoncore.AppendInt32Element(dst, "currentOp", 1)
		return bsoncore.AppendBooleanElement(dst, "$ownOps", !all)
	}))
	if err != nil {
		return nil, err
	}
	list, _ := bson.Get(reply, "inprog")
	return documents(list), nil
}

// readOn reads a cursor's documents to the end: what a member runs may be more than one batch holds
// (16 MB, https://www.mongodb.com/docs/manual/reference/limits/), and what is not read would be taken for gone.
func readOn(ctx context.Context, b backend.Backend, reply bson.Document) ([]bson.Document, error) {
	var all []bson.Document
	for {
		c, err := backend.ParseCursorReply(reply)
		if err != nil {
			return nil, err
		}
		all = append(all, documents(bson.Value{Type: bson.TypeArray, Data: c.Batch})...)
		if c.ID == 0 {
			return all, nil
		}
		database, collection, _ := strings.Cut(c.Namespace(), ".")
		reply, err = backend.Ask(ctx, b, backend.Command(database, func(dst []byte) []byte {
			dst = bsoncore.AppendInt64Element(dst, "getMore", c.ID)
			return bsoncore.AppendStringElement(dst, "collection", collection)
		}))
		if err != nil {
			return nil, fmt.Errorf("read on: %w", err)
		}
	}
}

func documents(list bson.Value) []bson.Document {
	if list.Type != bson.TypeArray {
		return nil
	}
	var docs []bson.Document
	it := bson.Elements(list.Data)
	for it.Next() {
		if doc, ok := it.Value().DocumentOK(); ok {
			docs = append(docs, doc)
		}
	}
	return docs
}

// Explain gives an operation the plan that its member does not report, by having it explain a find of the same documents: which index serves that
// serves the operation. Where it can't be had, or what is asked for is not shown, the plan stays unknown.
func Explain(ctx context.Context, d Deployment, o *Operation) error {
	database, collection := o.Collection()
	if o.Plan != "" || o.Hidden || collection == "" || !slices.Contains(Kinds, o.Kind) {
		return nil
	}
	b, err := d.On(ctx, o.Member)
	if err != nil {
		return err
	}
	at, find := bsoncore.AppendDocumentStart(nil)
	find = bsoncore.AppendStringElement(find, "find", collection)
	if o.Filter != nil {
		find = bsoncore.AppendDocumentElement(find, "filter", o.Filter)
	}
	if o.Sort != nil {
		find = bsoncore.AppendDocumentElement(find, "sort", o.Sort)
	}
	find, _ = bsoncore.AppendDocumentEnd(find, at)
	reply, err := backend.Ask(ctx, b, backend.Command(database, func(dst []byte) []byte {
		dst = bsoncore.AppendDocumentElement(dst, "explain", find)
		return bsoncore.AppendStringElement(dst, "verbosity", "queryPlanner")
	}))
	if err != nil {
		return fmt.Errorf("ask how %s would run %s: %w", o.Member, o.Kind, err)
	}
	if backend.ScansCollection(reply) {
		o.Plan = "COLLSCAN"
	} else if !backend.PlansNothing(reply) {
		o.Plan = "IXSCAN"
	}
	return nil
}

// Documents asks how many documents the collection of an operation has, from the member's own figures.
func Documents(ctx context.Context, d Deployment, o *Operation) (int64, error) {
	database, collection := o.Collection()
	b, err := d.On(ctx, o.Member)
	if err != nil {
		return 0, err
	}
	reply, err := backend.Ask(ctx, b, backend.Command(database, func(dst []byte) []byte {
		return bsoncore.AppendStringElement(dst, "count", collection)
	}))
	if err != nil {
		return 0, fmt.Errorf("count %s: %w", o.Namespace, err)
	}
	n, _ := bson.Get(reply, "n")
	count, _ := n.AsInt64OK()
	return count, nil
}
