package purge

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"oxbow/internal/bson"
	"oxbow/internal/query"
	"oxbow/internal/route"
)

// Predicate says which documents go: those whose time lies before a cut, those that a filter matches, or those for which both holds. A document whose time
// is missing, null, an array or of another type than Unit's lies before no cut, and neither does one whose time lies before From: it stays.
type Predicate struct {
	Field  string        // of the time, which may be a dotted path; "": time says nothing
	Unit   route.Unit    // how Field tells time
	Before time.Time     // the cut; zero: Age before now
	Age    time.Duration // of the documents that go, where Before is zero
	From   time.Time     // zero: DefaultFrom
	Where  bson.Document // a filter; nil: none
}

// DefaultFrom is the time before which a document stays: a date in seconds where milliseconds belong lies in January 1970, and would go otherwise.
var DefaultFrom = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)

// cut is a Predicate at one moment.
type cut struct {
	filter bson.Document // the whole of what goes
	time   span          // of the Predicate's Field; its path is "" without one
}

// span is an interval of the values of a path, all of one class (bson.Class).
type span struct {
	path   string
	lo, hi bson.Value // Type 0: no bound
	open   bool       // lo does not belong to it
	closed bool       // hi belongs to it
}

// Check says what is wrong with a Predicate.
func (p *Predicate) Check() error {
	switch {
	case p.Field == "" && (p.Age != 0 || !p.Before.IsZero() || !p.From.IsZero()):
		return fmt.Errorf("a time before which documents go needs the field that tells their time")
	case p.Field == "" && len(p.Where) <= emptyLength:
		return fmt.Errorf("nothing says what goes: give a time before which documents go, or a filter; where all go, drop the collection")
	case p.Field != "" && p.Age == 0 && p.Before.IsZero():
		return fmt.Errorf("field %s says nothing without a time before which documents go", p.Field)
	}
	if err := p.checkTimes(); err != nil {
		return err
	}
	if err := checkPath(p.Field); err != nil {
		return err
	}
	if _, err := query.ParseFilter(p.Where, query.Env{}); len(p.Where) > 0 && err != nil {
		return fmt.Errorf("read the filter: %w", err)
	}
	return nil
}

// checkTimes says what is wrong with the times.
func (p *Predicate) checkTimes() error {
	switch {
	case p.Age != 0 && !p.Before.IsZero():
		return fmt.Errorf("documents go either before an instant or from an age on, not both")
	case p.Age < 0:
		return fmt.Errorf("an age can't be negative")
	case !p.Before.IsZero() && !p.from().Before(p.Before):
		return fmt.Errorf("nothing lies before %s and not before %s", p.Before.UTC().Format(time.RFC3339), p.from().UTC().Format(time.RFC3339))
	}
	return nil
}

// emptyLength is the length of {}.
const emptyLength = 5

func checkPath(path string) error {
	if path == "" {
		return nil
	}
	for part := range strings.SplitSeq(path, ".") {
		if part == "" || strings.HasPrefix(part, "$") || strings.ContainsRune(part, 0) {
			return fmt.Errorf("%q is no field", path)
		}
	}
	return nil
}

// at fixes the Predicate at a moment.
func (p *Predicate) at(now time.Time) cut {
	if p.Field == "" {
		return cut{filter: p.Where}
	}
	s := span{path: p.Field, lo: unitValue(p.Unit, p.from()), hi: unitValue(p.Unit, p.instant(now))}
	// {$gte, $lt} alone matches an array with one element on each side, whatever these are.
	return cut{filter: and(s.filter(), noArrays(p.Field), p.Where), time: s}
}

// from is the time before which documents stay.
func (p *Predicate) from() time.Time {
	if p.From.IsZero() {
		return DefaultFrom
	}
	return p.From
}

// instant is the time before which documents go.
func (p *Predicate) instant(now time.Time) time.Time {
	if p.Before.IsZero() {
		return now.Add(-p.Age)
	}
	return p.Before
}

// unitValue is an instant as a unit tells it. Of a whole number or an ObjectId it is the first one that does not lie before the instant.
func unitValue(u route.Unit, at time.Time) bson.Value {
	seconds := at.Unix()
	if at.Nanosecond() > 0 {
		seconds++
	}
	switch u {
	case route.Seconds:
		return bson.Value{Type: bson.TypeInt64, Data: bsoncore.AppendInt64(nil, seconds)}
	case route.Milliseconds:
		return bson.Value{Type: bson.TypeInt64, Data: bsoncore.AppendInt64(nil, millis(at))}
	case route.ObjectID:
		var id [12]byte
		binary.BigEndian.PutUint32(id[:], uint32(max(0, min(seconds, 1<<32-1))))
		return bson.Value{Type: bson.TypeObjectID, Data: id[:]}
	}
	return bson.Value{Type: bson.TypeDateTime, Data: bsoncore.AppendDateTime(nil, millis(at))}
}

// millis is the first millisecond that does not lie before an instant.
func millis(at time.Time) int64 {
	ms := at.UnixMilli()
	if at.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// instantOf reads a value that a unit tells time by.
func instantOf(u route.Unit, v bson.Value) (time.Time, bool) {
	switch u {
	case route.ObjectID:
		id, ok := v.ObjectIDOK()
		return time.Unix(int64(binary.BigEndian.Uint32(id[:4])), 0), ok
	case route.Date:
		ms, ok := v.DateTimeOK()
		return time.UnixMilli(ms), ok
	}
	n, ok := bson.NumberOf(v)
	if !ok {
		return time.Time{}, false
	}
	i, ok := n.TruncInt64()
	if u == route.Seconds {
		return time.Unix(i, 0), ok
	}
	return time.UnixMilli(i), ok
}

// filter is the span as a filter.
func (s span) filter() bson.Document {
	b := bsoncore.NewDocumentBuilder().StartDocument(s.path)
	if s.lo.Type != 0 {
		op := "$gte"
		if s.open {
			op = "$gt"
		}
		b.AppendValue(op, s.lo)
	}
	if s.hi.Type != 0 {
		op := "$lt"
		if s.closed {
			op = "$lte"
		}
		b.AppendValue(op, s.hi)
	}
	return bson.Document(b.FinishDocument().Build())
}

// empty reports whether nothing can lie in a span with two bounds.
func (s span) empty() bool {
	c := bson.Compare(s.lo, s.hi)
	return c > 0 || c == 0 && (s.open || !s.closed)
}

// and is the filter of what several filters match; empty ones are left out.
func and(filters ...bson.Document) bson.Document {
	var wanted []bson.Document
	for _, f := range filters {
		if len(f) > emptyLength {
			wanted = append(wanted, f)
		}
	}
	if len(wanted) == 1 {
		return wanted[0]
	}
	a := bsoncore.NewArrayBuilder()
	for _, f := range wanted {
		a.AppendDocument(f)
	}
	return bson.Document(bsoncore.NewDocumentBuilder().AppendArray("$and", a.Build()).Build())
}
