package purge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
)

// NamedParts are collections whose names tell the time of what lies in them, as applications make them: logGset170605. A name has an hour, a day or a month.
type NamedParts struct {
	backend  backend.Backend
	template string
	database []piece
	names    []piece
	zone     *time.Location
}

// piece is a part of a template: literal text, or digits of a date.
type piece struct {
	literal string
	digits  string // yyyy, yy, mm, dd or hh; "": literal
}

// NewNamedParts reads a template for names, such as fla.logGset{yymmdd} or db{yymmdd}.logGset{yymmdd}: a database and a collection, either of which may have
// dates made of yyyy or yy, mm, dd and hh. Days begin in a zone; nil: UTC.
func NewNamedParts(b backend.Backend, template string, zone *time.Location) (*NamedParts, error) {
	database, collection, ok := strings.Cut(template, ".")
	if !ok || database == "" || collection == "" {
		return nil, fmt.Errorf("%q is no template: write DATABASE.COLLECTION with a date such as {yymmdd}", template)
	}
	if zone == nil {
		zone = time.UTC
	}
	n := &NamedParts{backend: b, template: template, zone: zone}
	var err error
	if n.database, err = pieces(database); err == nil {
		n.names, err = pieces(collection)
	}
	if err != nil {
		return nil, fmt.Errorf("%q is no template: %w", template, err)
	}
	if e := exactness(append(slices.Clone(n.database), n.names...)); e == "" || !has(append(slices.Clone(n.database), n.names...), "mm") {
		return nil, fmt.Errorf("%q is no template: it needs a date with a year and a month at least, such as {yymmdd}", template)
	}
	return n, nil
}

func pieces(text string) ([]piece, error) {
	var all []piece
	for text != "" {
		before, after, found := strings.Cut(text, "{")
		if before != "" {
			all = append(all, piece{literal: before})
		}
		if !found {
			break
		}
		date, rest, closed := strings.Cut(after, "}")
		if !closed || date == "" {
			return nil, fmt.Errorf("a { has no }, or nothing between")
		}
		text = rest
		for date != "" {
			i := slices.IndexFunc(dateDigits, func(d string) bool { return strings.HasPrefix(date, d) })
			if i < 0 {
				return nil, fmt.Errorf("there is no {%s}; there are yyyy, yy, mm, dd and hh", date)
			}
			all = append(all, piece{digits: dateDigits[i]})
			date = date[len(dateDigits[i]):]
		}
	}
	return all, nil
}

// dateDigits are the parts of a date, the longer before its beginning.
var dateDigits = []string{"yyyy", "yy", "mm", "dd", "hh"}

func has(all []piece, digits string) bool {
	return slices.ContainsFunc(all, func(p piece) bool { return p.digits == digits })
}

// exactness is the shortest time that pieces tell: hh, dd or mm; "": no date.
func exactness(all []piece) string {
	if !has(all, "yyyy") && !has(all, "yy") {
		return ""
	}
	for _, d := range []string{"hh", "dd", "mm"} {
		if has(all, d) {
			return d
		}
	}
	return ""
}

// List implements Parts.
func (n *NamedParts) List(ctx context.Context) ([]Part, error) {
	databases := []string{}
	if exactness(n.database) == "" && len(n.database) == 1 {
		databases = append(databases, n.database[0].literal)
	} else {
		found, err := n.listed(ctx, "admin", bsoncore.NewDocumentBuilder().AppendInt32("listDatabases", 1).AppendBoolean("nameOnly", true), "databases")
		if err != nil {
			return nil, err
		}
		databases = found
	}
	var parts []Part
	for _, database := range databases {
		date := map[string]int{}
		if !match(n.database, database, date) {
			continue
		}
		found, err := n.collections(ctx, database)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if p, ok := n.part(database, name, date); ok {
				p.measure(ctx)
				parts = append(parts, p)
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return a.Start.Compare(b.Start) })
	return parts, nil
}

func (n *NamedParts) collections(ctx context.Context, database string) ([]string, error) {
	body := bsoncore.NewDocumentBuilder().AppendInt32("listCollections", 1).AppendBoolean("nameOnly", true)
	body.StartDocument("cursor").AppendInt32("batchSize", 100_000).FinishDocument()
	return n.listed(ctx, database, body, "cursor", "firstBatch")
}

// listed runs a command and returns the names in a list of its reply.
func (n *NamedParts) listed(ctx context.Context, database string, body *bsoncore.DocumentBuilder, path ...string) ([]string, error) {
	c := &collection{Target{Backend: n.backend, Namespace: backend.Namespace{Database: database}}, defaultComment}
	reply, err := c.run(ctx, n.backend, body)
	if err != nil {
		return nil, err
	}
	v, err := bsoncore.Document(reply).LookupErr(path...)
	if err != nil {
		return nil, fmt.Errorf("the reply has no %s", strings.Join(path, "."))
	}
	var names []string
	for _, d := range documents(v.Data) {
		name, _ := bson.Get(d, "name")
		if s, ok := name.StringValueOK(); ok {
			names = append(names, s)
		}
	}
	return names, nil
}

// part is the part with a name, where it is the template's and its date is one.
func (n *NamedParts) part(database, name string, date map[string]int) (Part, bool) {
	own := map[string]int{}
	for k, v := range date {
		own[k] = v
	}
	if !match(n.names, name, own) {
		return Part{}, false
	}
	year, ok := own["yyyy"]
	if !ok {
		year = 2000 + own["yy"]
	}
	month, day := own["mm"], 1
	if d, ok := own["dd"]; ok {
		day = d
	}
	start := time.Date(year, time.Month(month), day, own["hh"], 0, 0, 0, n.zone)
	if start.Month() != time.Month(month) || start.Day() != day || own["hh"] > 23 {
		return Part{}, false
	}
	var end time.Time
	switch exactness(append(slices.Clone(n.database), n.names...)) {
	case "hh":
		end = start.Add(time.Hour)
	case "dd":
		end = time.Date(year, time.Month(month), day+1, 0, 0, 0, 0, n.zone)
	default:
		end = time.Date(year, time.Month(month)+1, 1, 0, 0, 0, 0, n.zone)
	}
	ns := backend.Namespace{Database: database, Collection: name}
	return Part{Name: ns.String(), Backend: n.backend, Namespace: ns, Start: start, End: end, Documents: -1, Bytes: -1}, true
}

// match reports whether a text is what pieces make, and notes its date; a date that is there twice has to be the same.
func match(all []piece, text string, date map[string]int) bool {
	for _, p := range all {
		if p.digits == "" {
			if !strings.HasPrefix(text, p.literal) {
				return false
			}
			text = text[len(p.literal):]
			continue
		}
		if len(text) < len(p.digits) {
			return false
		}
		n := 0
		for _, c := range []byte(text[:len(p.digits)]) {
			if c < '0' || c > '9' {
				return false
			}
			n = 10*n + int(c-'0')
		}
		if before, there := date[p.digits]; there && before != n {
			return false
		}
		date[p.digits] = n
		text = text[len(p.digits):]
	}
	return text == ""
}

// Hide implements Parts: nothing keeps an application from writing to its own collections.
func (n *NamedParts) Hide(context.Context, Part) error { return nil }

// Drop implements Parts. A database with a date in its name goes with its last collection.
func (n *NamedParts) Drop(ctx context.Context, p Part) error {
	c := &collection{Target{Backend: n.backend, Namespace: p.Namespace}, defaultComment}
	if _, err := c.run(ctx, n.backend, majority(bsoncore.NewDocumentBuilder().AppendString("drop", p.Namespace.Collection))); err != nil {
		return err
	}
	if exactness(n.database) == "" {
		return nil
	}
	left, err := n.collections(ctx, p.Namespace.Database)
	if err != nil || len(left) > 0 {
		return err
	}
	_, err = c.run(ctx, n.backend, majority(bsoncore.NewDocumentBuilder().AppendInt32("dropDatabase", 1)))
	return err
}

// majority adds the write concern of everything that a purge does.
func majority(body *bsoncore.DocumentBuilder) *bsoncore.DocumentBuilder {
	return body.StartDocument("writeConcern").AppendString("w", "majority").FinishDocument()
}
