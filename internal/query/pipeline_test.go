package query

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// listed is a stream over documents in memory. It overwrites each document when the next one is asked for, as a contract of Documents allows.
type listed struct {
	docs   []bson.Document
	at     int
	buf    []byte
	closed int
}

func (l *listed) Next(context.Context) (bson.Document, error) {
	for i := range l.buf {
		l.buf[i] = 0xff
	}
	if l.at == len(l.docs) {
		return nil, nil
	}
	l.buf = append(l.buf[:0], l.docs[l.at]...)
	l.at++
	return l.buf, nil
}

func (l *listed) Close() error {
	l.closed++
	return nil
}

// collection finds in documents as a collection does.
func collection(t testing.TB, docs []bson.Document) func(context.Context, string, Head) (Documents, error) {
	return func(_ context.Context, name string, find Head) (Documents, error) {
		if name != "other" {
			return &listed{}, nil
		}
		out, err := found(docs, find)
		return &listed{docs: out}, err
	}
}

// found applies a head to documents.
func found(docs []bson.Document, find Head) ([]bson.Document, error) {
	for _, d := range []*bson.Document{&find.Filter, &find.Sort} {
		if *d == nil {
			*d = emptyDocument
		}
	}
	let, err := EvalLet(find.Let, Env{NowMillis: testNow})
	if err != nil {
		return nil, err
	}
	filter, err := ParseFilter(find.Filter, Env{NowMillis: testNow, Let: let})
	if err != nil {
		return nil, err
	}
	sort, _, err := ParseSort(find.Sort)
	if err != nil {
		return nil, err
	}
	sorter := NewSorter(sort, 0, 1<<30, nil)
	for _, doc := range docs {
		ok, err := filter.Match(doc)
		if err == nil && ok {
			err = sorter.Add(doc)
		}
		if err != nil {
			return nil, err
		}
	}
	out := sorter.Sorted()
	out = out[min(int(find.Skip), len(out)):]
	if find.Limit > 0 {
		out = out[:min(int(find.Limit), len(out))]
	}
	return out, nil
}

// drain copies all documents and closes the stream.
func drain(in Documents) (docs []bson.Document, err error) {
	defer in.Close()
	for {
		doc, err := in.Next(context.Background())
		if err != nil || doc == nil {
			return docs, err
		}
		docs = append(docs, append(bson.Document(nil), doc...))
	}
}

func TestPipeline(t *testing.T) {
	for _, c := range readTable(t, "pipeline.txt") {
		t.Run(c.title, func(t *testing.T) { runPipelineCase(t, c) })
	}
}

func runPipelineCase(t *testing.T, c tableCase) {
	docs := documents(t, c.fields["docs"])
	stages := value(t, c.fields["pipeline"]).Data
	opts := PipelineOptions{Env: Env{NowMillis: testNow}, MaxBytes: 1 << 20, Lookup: collection(t, documents(t, c.fields["other"]))}
	p, err := ParsePipeline(stages, opts)
	var got []bson.Document
	in := &listed{docs: docs}
	if err == nil {
		if got, err = drain(p.Run(in)); in.closed != 1 {
			t.Errorf("the input was closed %d times", in.closed)
		}
	}
	if code, ok := c.fields["error"]; ok {
		if err == nil || fmt.Sprint(int(mongoerr.From(err).Code)) != code {
			t.Fatalf("%v, %v; want error %s", extJSONs(got), err, code)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if want := documents(t, c.fields["want"]); extJSONs(got) != extJSONs(want) {
		t.Fatalf("got  %s\nwant %s", extJSONs(got), extJSONs(want))
	}
	// The head on the collection and the rest behind it give the same, also on documents cut down to what is needed.
	head, rest := p.Head()
	again, err := found(docs, head)
	if err != nil {
		t.Fatal(err)
	}
	if fields, all := rest.Needs(); !all {
		for i := range again {
			again[i] = only(again[i], fields)
		}
	}
	if again, err = drain(rest.Run(&listed{docs: again})); err != nil || extJSONs(again) != extJSONs(got) {
		t.Fatalf("by head and rest: %s, %v\nat once: %s", extJSONs(again), err, extJSONs(got))
	}
}

// only returns a document with some of its fields.
func only(doc bson.Document, fields []string) bson.Document {
	out := begin(nil)
	it := bson.Elements(doc)
	for it.Next() {
		for _, f := range fields {
			if f == string(it.Key()) {
				out = append(out, it.Raw()...)
			}
		}
	}
	return finish(out, 0)
}

func extJSONs(docs []bson.Document) string {
	texts := make([]string, len(docs))
	for i, d := range docs {
		texts[i] = extJSON(d)
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func TestHead(t *testing.T) {
	for source, want := range map[string]string{
		`[]`: `{} {} 0 0 []`,
		`[{"$match": {"a": 1}}, {"$match": {}}, {"$match": {"b": 2}}, {"$sort": {"c": 1}}, {"$skip": 2}, {"$limit": 5}, {"$count": "n"}]`: `{"$and":[{"a":1},{"b":2}]} {"c":1} 2 5 [$count]`,
		`[{"$match": {"a": 1}}, {"$limit": 5}, {"$skip": 2}, {"$limit": 4}, {"$sort": {"a": 1}}]`:                                         `{"a":1} {} 2 3 [$sort]`,
		`[{"$limit": 5}, {"$skip": 5}]`:           `{} {} 0 5 [$skip]`,
		`[{"$count": "n"}, {"$match": {"n": 1}}]`: `{} {} 0 0 [$count $match]`,
	} {
		p, err := ParsePipeline(value(t, source).Data, PipelineOptions{})
		if err != nil {
			t.Fatal(source, err)
		}
		head, rest := p.Head()
		text := func(d bson.Document) string {
			if d == nil {
				d = emptyDocument
			}
			return extJSON(d)
		}
		if got := fmt.Sprint(text(head.Filter), " ", text(head.Sort), " ", head.Skip, " ", head.Limit, " ", rest.Stages()); got != want {
			t.Errorf("%s: %s\nwant %s", source, got, want)
		}
	}
}

func TestNeeds(t *testing.T) {
	for source, want := range map[string]string{
		`[]`:                       `[] true`,
		`[{"$match": {"a.b": 1}}]`: `[] true`,
		`[{"$match": {"a.b": 1}}, {"$count": "n"}]`: `[a] false`,
		`[{"$match": {"$or": [{"z": 1}, {"$expr": {"$gt": ["$y", "$x.w"]}}]}}, {"$group": {"_id": "$g.h", "s": {"$sum": "$v"}}}]`: `[g v x y z] false`,
		`[{"$group": {"_id": null, "all": {"$push": "$$ROOT"}}}]`:                                                                 `[] true`,
		`[{"$sort": {"t.u": 1}}, {"$project": {"a": 1, "b": "$c"}}]`:                                                              `[_id a c t] false`,
		`[{"$project": {"a": 0}}, {"$group": {"_id": "$b"}}]`:                                                                     `[b] false`,
		`[{"$set": {"a": "$q", "b.c": 1}}, {"$group": {"_id": "$a"}}]`:                                                            `[a b q] false`,
		`[{"$unwind": "$l.m"}, {"$sortByCount": "$x"}]`:                                                                           `[l x] false`,
		`[{"$replaceRoot": {"newRoot": "$r"}}]`:                                                                                   `[r] false`,
		`[{"$lookup": {"from": "o", "localField": "k.l", "foreignField": "f", "as": "j"}}, {"$group": {"_id": "$j"}}]`:            `[j k] false`,
	} {
		p, err := ParsePipeline(value(t, source).Data, PipelineOptions{Lookup: collection(t, nil)})
		if err != nil {
			t.Fatal(source, err)
		}
		fields, all := p.Needs()
		if got := fmt.Sprint(fields, all); got != want {
			t.Errorf("%s: %s, want %s", source, got, want)
		}
	}
}

func TestCollections(t *testing.T) {
	source := `[{"$lookup": {"from": "a", "localField": "x", "foreignField": "y", "as": "j"}}, {"$lookup": {"from": "b", "as": "k", "pipeline": [{"$lookup": {"from": "c", "as": "l", "pipeline": []}}]}}]`
	p, err := ParsePipeline(value(t, source).Data, PipelineOptions{Lookup: collection(t, nil)})
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(p.Collections()); got != "[a b c]" {
		t.Error(got)
	}
	if _, err := ParsePipeline(value(t, source).Data, PipelineOptions{}); !mongoerr.Is(err, mongoerr.CommandNotSupported) {
		t.Errorf("$lookup without collections: %v", err)
	}
	if _, err := ParsePipeline(value(t, `[{"$match": {}}, {"$collStats": {"storageStats": {}}}]`).Data, PipelineOptions{}); !mongoerr.Is(err, 40602) {
		t.Errorf("$collStats: %v", err)
	}
}

// TestLookupPushesVariables: the collection is asked with a filter that holds by the let that comes with it, values that look like expressions
// included.
func TestLookupPushesVariables(t *testing.T) {
	asked := 0
	opts := PipelineOptions{MaxBytes: 1 << 20, Lookup: func(_ context.Context, _ string, find Head) (Documents, error) {
		asked++
		out, err := found(documents(t, `[{"_id": "$x"}, {"_id": "y"}, {}]`), find)
		return &listed{docs: out}, err
	}}
	p, err := ParsePipeline(value(t, `[{"$lookup": {"from": "o", "let": {"v": "$v"}, "as": "j", "pipeline": [{"$match": {"$expr": {"$eq": ["$_id", "$$v"]}}}]}}]`).Data, opts)
	if err != nil {
		t.Fatal(err)
	}
	got, err := drain(p.Run(&listed{docs: documents(t, `[{"v": "$x"}, {"v": "y"}, {"n": 1}]`)}))
	want := `[{"v":"$x","j":[{"_id":"$x"}]}, {"v":"y","j":[{"_id":"y"}]}, {"n":1,"j":[{}]}]`
	if err != nil || extJSONs(got) != want || asked != 3 {
		t.Errorf("%s, %v, asked %d times; want %s", extJSONs(got), err, asked, want)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	big := strings.Repeat("x", 1000)
	var docs []bson.Document
	for i := range 200 {
		docs = append(docs, document(t, fmt.Sprintf(`{"_id": %d, "s": "%s"}`, i, big)))
	}
	for source, code := range map[string]mongoerr.Code{
		`[{"$group": {"_id": "$_id", "s": {"$first": "$s"}}}]`:                          mongoerr.QueryExceededMemoryNoDiskUse,
		`[{"$group": {"_id": null, "s": {"$push": "$s"}}}]`:                             mongoerr.QueryExceededMemoryNoDiskUse,
		`[{"$group": {"_id": null, "s": {"$addToSet": "$$ROOT"}}}]`:                     mongoerr.QueryExceededMemoryNoDiskUse,
		`[{"$sort": {"s": 1}}]`:                                                         mongoerr.QueryExceededMemoryNoDiskUse,
		`[{"$sort": {"s": 1}}, {"$limit": 3}, {"$skip": 1}]`:                            0,
		`[{"$sort": {"s": 1}}, {"$skip": 1}, {"$limit": 3}, {"$group": {"_id": "$s"}}]`: 0,
	} {
		p, err := ParsePipeline(value(t, source).Data, PipelineOptions{MaxBytes: 100_000})
		if err != nil {
			t.Fatal(err)
		}
		_, err = drain(p.Run(&listed{docs: docs}))
		if code == 0 && err != nil || code != 0 && !mongoerr.Is(err, code) {
			t.Errorf("%s: %v; want code %d", source, err, code)
		}
	}
}

func TestLookupIsBounded(t *testing.T) {
	big := wrapValue(nil, "s", value(t, `"`+strings.Repeat("x", 1<<20)+`"`))
	docs := make([]bson.Document, 17)
	for i := range docs {
		docs[i] = big
	}
	p, err := ParsePipeline(value(t, `[{"$lookup": {"from": "other", "pipeline": [], "as": "j"}}]`).Data, PipelineOptions{MaxBytes: 1 << 30, Lookup: collection(t, docs)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = drain(p.Run(&listed{docs: docs[:1]})); !mongoerr.Is(err, 4568) {
		t.Errorf("%v; want 4568", err)
	}
	p, err = ParsePipeline(value(t, `[{"$group": {"_id": null, "all": {"$push": "$s"}}}]`).Data, PipelineOptions{MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = drain(p.Run(&listed{docs: docs})); !mongoerr.Is(err, mongoerr.BSONObjectTooLarge) {
		t.Errorf("%v; want BSONObjectTooLarge", err)
	}
}

func TestNestingIsBounded(t *testing.T) {
	deeper := func(n int) string {
		return fmt.Sprintf(`{"$reduce": {"input": {"$range": [0, %d]}, "initialValue": "$a", "in": ["$$value"]}}`, n)
	}
	for source, fits := range map[string]bool{
		`[{"$project": {"x": ` + deeper(150) + `}}]`:                                                                  true,
		`[{"$project": {"x": ` + deeper(200) + `}}]`:                                                                  false,
		`[{"$set": {"x": ` + deeper(100) + `}}, {"$set": {"a": "$x"}}, {"$replaceWith": {"y": ` + deeper(100) + `}}]`: false,
		`[{"$group": {"_id": ` + deeper(150) + `, "x": {"$push": ` + deeper(190) + `}}}]`:                             false,
		`[{"$set": {"x": ` + deeper(300) + `}}, {"$count": "n"}]`:                                                     true,
	} {
		p, err := ParsePipeline(value(t, source).Data, PipelineOptions{})
		if err != nil {
			t.Fatal(source, err)
		}
		_, err = drain(p.Run(&listed{docs: documents(t, `[{"a": 1}]`)}))
		if fits && err != nil || !fits && !mongoerr.Is(err, mongoerr.Overflow) {
			t.Errorf("%s: %v", source, err)
		}
	}
}

// TestGroupCountsEveryDocument: the counts of the groups add up to the documents, whatever their keys are.
func TestGroupCountsEveryDocument(t *testing.T) {
	stages := value(t, `[{"$group": {"_id": "$k", "n": {"$sum": 1}, "s": {"$sum": "$v"}}}]`).Data
	p, err := ParsePipeline(stages, PipelineOptions{MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(rt *rapid.T) {
		var docs []bson.Document
		total := int64(0)
		for _, k := range rapid.SliceOf(rapid.IntRange(0, 5)).Draw(rt, "keys") {
			v := rapid.Int32().Draw(rt, "v")
			total += int64(v)
			key := []string{`1`, `1.0`, `{"$numberLong": "1"}`, `"1"`, `null`, `[1]`}[k]
			docs = append(docs, document(t, fmt.Sprintf(`{"k": %s, "v": %d}`, key, v)))
		}
		groups, err := drain(p.Run(&listed{docs: docs}))
		if err != nil {
			rt.Fatal(err)
		}
		n, sum := int64(0), int64(0)
		for _, g := range groups {
			count, _ := bson.Get(g, "n")
			part, _ := bson.Get(g, "s")
			i, _ := wholeNumber(count)
			j, _ := wholeNumber(part)
			n, sum = n+i, sum+j
		}
		if n != int64(len(docs)) || sum != total || len(groups) > 4 {
			rt.Fatalf("%d documents, sum %d, in %s", len(docs), total, extJSONs(groups))
		}
	})
}
