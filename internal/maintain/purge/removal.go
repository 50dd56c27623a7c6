package purge

import (
	"context"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/maintain"
)

// removal takes documents of one collection away by their _id.
type removal struct {
	collection *collection
	filter     bson.Document // of what goes
	archive    Archive       // nil: none
	archiveAs  backend.Namespace
	average    int64 // bytes of a document, about
	entry      int64 // bytes that the delete of one adds to what the pace counts
}

// statementBytes bounds the documents that one delete carries where it carries whole ones: a message has 48 MB at most
// (maxMessageSizeBytes of https://www.mongodb.com/docs/manual/reference/command/hello/).
const statementBytes = 16 << 20

// remove takes away those of some documents that still match the filter, and counts them. With an archive they are whole, are archived before, and go only
// where they are still the same; else they need only their _id.
func (r *removal) remove(ctx context.Context, docs []bson.Document, pace maintain.Pace) (tally, error) {
	var t tally
	if len(docs) == 0 {
		return t, nil
	}
	if err := pace.Wait(ctx, len(docs), int64(len(docs))*r.entry); err != nil {
		return t, err
	}
	groups := r.byIDs(docs)
	if r.archive != nil {
		if err := r.archive.Append(r.archiveAs, docs); err != nil {
			return t, fmt.Errorf("archive %d documents: %w", len(docs), err)
		}
		t.Archived = int64(len(docs))
		groups = r.unchanged(docs)
	}
	for _, statements := range groups {
		n, err := r.collection.delete(ctx, statements...)
		if err != nil {
			return t, err
		}
		t.Gone += n
	}
	t.Bytes = t.Gone * r.average
	t.Skipped = max(0, int64(len(docs))-t.Gone)
	return t, nil
}

// idBytes bounds the _ids of one statement, which like any document has 16 MB at most, and its filter is in it too.
const idBytes = 4 << 20

// byIDs is one statement for all, or as many as hold their _ids, each a group of its own.
func (r *removal) byIDs(docs []bson.Document) [][]bson.Document {
	var groups [][]bson.Document
	for ids := idsOf(docs); len(ids) > 0; {
		n := within(ids, idBytes)
		groups = append(groups, []bson.Document{r.collection.statement(and(among(ids[:n]), r.filter), text("_id_"))})
		ids = ids[n:]
	}
	return groups
}

// within is how many of some _ids, one at least, have together no more than so many bytes.
func within(ids []bson.Value, most int) int {
	size := 0
	for n, id := range ids {
		if size += len(id.Data); size > most && n > 0 {
			return n
		}
	}
	return len(ids)
}

// among is a filter for documents with one of these _ids.
func among(ids []bson.Value) bson.Document {
	a := bsoncore.NewArrayBuilder()
	for _, id := range ids {
		a.AppendValue(id)
	}
	return bson.Document(bsoncore.NewDocumentBuilder().StartDocument("_id").AppendArray("$in", a.Build()).FinishDocument().Build())
}

// unchanged is one statement a document, in groups that one message holds.
func (r *removal) unchanged(docs []bson.Document) [][]bson.Document {
	var groups [][]bson.Document
	var group []bson.Document
	size := 0
	for _, d := range docs {
		if size += len(d); size > statementBytes && len(group) > 0 {
			groups, group, size = append(groups, group), nil, len(d)
		}
		id, _ := bson.Get(d, "_id")
		byID := bsoncore.NewDocumentBuilder().StartDocument("_id").AppendValue("$eq", id).FinishDocument().Build()
		group = append(group, r.collection.statement(and(bson.Document(byID), r.filter, sameAs(d)), text("_id_")))
	}
	return append(groups, group)
}

// sameAs is a filter for a document that is as it was.
func sameAs(doc bson.Document) bson.Document {
	literal := bsoncore.NewDocumentBuilder().AppendDocument("$literal", doc).Build()
	both := bsoncore.NewArrayBuilder().AppendString("$$ROOT").AppendDocument(literal).Build()
	return bson.Document(bsoncore.NewDocumentBuilder().StartDocument("$expr").AppendArray("$eq", both).FinishDocument().Build())
}

func idsOf(docs []bson.Document) []bson.Value {
	var ids []bson.Value
	for _, d := range docs {
		id, _ := bson.Get(d, "_id")
		ids = append(ids, id)
	}
	return ids
}

// without is a filter for documents with other _ids.
func without(ids []bson.Value) bson.Document {
	a := bsoncore.NewArrayBuilder()
	for _, id := range ids {
		a.AppendValue(id)
	}
	return bson.Document(bsoncore.NewDocumentBuilder().StartDocument("_id").AppendArray("$nin", a.Build()).FinishDocument().Build())
}
