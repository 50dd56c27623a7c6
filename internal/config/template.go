package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"oxbow/internal/route"
)

// Template names the partitions of a collection: their database and their collection. Its placeholders are {database}, {collection}, {slot}, and
// dates of the range's start on the zone's calendar, put together from yyyy or yy, mm, dd, hh and (after hh) mm for minutes, as
// {yyyymmdd}.
type Template struct {
	text       string
	database   []piece
	collection []piece
}

// piece is a part of a name: literal text, the slot, or a part of a date.
type piece struct {
	kind    pieceKind
	literal string
}

type pieceKind uint8

const (
	literal pieceKind = iota
	slotNumber
	fullYear
	shortYear
	month
	dayOfMonth
	hour
	minute
)

// digits is how many digits a part of a date has.
var digits = [...]int{fullYear: 4, shortYear: 2, month: 2, dayOfMonth: 2, hour: 2, minute: 2}

// String returns the template as it was written.
func (t Template) String() string { return t.text }

// datePlaceholder returns the placeholder that tells the cells of a time layout apart.
func datePlaceholder(e route.Every) string {
	switch e {
	case route.Minute:
		return "{yyyymmddhhmm}"
	case route.Hour:
		return "{yyyymmddhh}"
	case route.Month:
		return "{yyyymm}"
	default:
		return "{yyyymmdd}"
	}
}

// defaultTemplate returns the template of a collection that gives none.
func defaultTemplate(l route.Layout, as As) string {
	text := "{collection}"
	if as == AsDatabase {
		text = "{database}"
	}
	if l.Time != nil {
		text += "_" + datePlaceholder(l.Time.Every)
	}
	if l.Hash != nil && as == AsCollection {
		text += "_{slot}"
	}
	return text
}

// newTemplate reads a template for a collection. As AsDatabase it names the database, and the collection keeps its name, with the slot behind it
// when there is a hash layout.
func newTemplate(text, database, collection string, l route.Layout, as As) (Template, error) {
	pieces, err := parsePieces(text, database, collection)
	if err != nil {
		return Template{}, err
	}
	t := Template{text: text, database: []piece{{literal: database}}, collection: pieces}
	if as == AsDatabase {
		t.database, t.collection = pieces, []piece{{literal: collection}}
		if l.Hash != nil {
			t.collection = []piece{{literal: collection + "_"}, {kind: slotNumber}}
		}
	}
	return t, t.tellsApart(l)
}

// parsePieces splits a template and fills in the names.
func parsePieces(text, database, collection string) ([]piece, error) {
	var pieces []piece
	add := func(p piece) {
		if n := len(pieces); p.kind == literal && n > 0 && pieces[n-1].kind == literal {
			pieces[n-1].literal += p.literal
		} else if p.kind != literal || p.literal != "" {
			pieces = append(pieces, p)
		}
	}
	rest := text
	for rest != "" {
		before, after, found := strings.Cut(rest, "{")
		if strings.Contains(before, "}") {
			return nil, fmt.Errorf("%q has a } without a {", text)
		}
		add(piece{literal: before})
		if !found {
			break
		}
		name, behind, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("%q has a { without a }", text)
		}
		rest = behind
		switch name {
		case "database":
			add(piece{literal: database})
		case "collection":
			add(piece{literal: collection})
		case "slot":
			add(piece{kind: slotNumber})
		default:
			date, err := parseDate(name)
			if err != nil {
				return nil, err
			}
			for _, p := range date {
				add(p)
			}
		}
	}
	return pieces, nil
}

// parseDate splits a placeholder such as yyyymmdd.
func parseDate(name string) ([]piece, error) {
	var pieces []piece
	afterHour := false
	rest := name
	for rest != "" {
		var p piece
		switch {
		case strings.HasPrefix(rest, "yyyy"):
			p.kind = fullYear
		case strings.HasPrefix(rest, "yy"):
			p.kind = shortYear
		case strings.HasPrefix(rest, "mm") && afterHour:
			p.kind = minute
		case strings.HasPrefix(rest, "mm"):
			p.kind = month
		case strings.HasPrefix(rest, "dd"):
			p.kind = dayOfMonth
		case strings.HasPrefix(rest, "hh"):
			p.kind = hour
			afterHour = true
		default:
			return nil, fmt.Errorf("there is no placeholder {%s}; there are {database}, {collection}, {slot} and dates such as {yyyymmdd}, {yymmdd}, {yyyymmddhhmm}", name)
		}
		pieces = append(pieces, p)
		rest = rest[digits[p.kind]:]
	}
	if len(pieces) == 0 {
		return nil, fmt.Errorf("a placeholder {} is empty")
	}
	return pieces, nil
}

// tellsApart says what a template lacks to give each partition of a layout a name of its own, or what it has that the layout has not.
func (t Template) tellsApart(l route.Layout) error {
	has := map[pieceKind]bool{}
	for _, p := range append(append([]piece{}, t.database...), t.collection...) {
		has[p.kind] = true
	}
	dated := false
	for kind := fullYear; kind <= minute; kind++ {
		dated = dated || has[kind]
	}
	switch {
	case l.Hash != nil && !has[slotNumber]:
		return fmt.Errorf("%q does not tell partitions apart: it lacks {slot}", t.text)
	case l.Hash == nil && has[slotNumber]:
		return fmt.Errorf("%q has a {slot}, and the layout has no hash", t.text)
	case l.Time == nil && dated:
		return fmt.Errorf("%q has a date, and the layout has no time", t.text)
	case l.Time == nil:
		return nil
	}
	need := map[route.Every]pieceKind{route.Month: month, route.Week: dayOfMonth, route.Day: dayOfMonth, route.Hour: hour, route.Minute: minute}[l.Time.Every]
	for kind := month; kind <= need; kind++ {
		if !has[kind] {
			return fmt.Errorf("%q does not tell partitions apart: it needs a date as exact as %s", t.text, datePlaceholder(l.Time.Every))
		}
	}
	if !has[fullYear] && !has[shortYear] {
		return fmt.Errorf("%q does not tell partitions apart: it lacks the year", t.text)
	}
	return nil
}

// PhysicalName returns the names of a partition's database and collection. slot is -1 without a hash layout, start is MinTime without a
// time layout. From generation 2 on the generation is part of the name.
func (c *Collection) PhysicalName(slot int, start int64, generation int) (database, collection string) {
	var at time.Time
	repeated := false
	if c.Layout.Time != nil {
		at = time.UnixMilli(start).In(c.Layout.Time.Zone)
		repeated = c.Layout.Time.Every <= route.Hour && clockRepeats(at)
	}
	database = render(c.Template.database, slot, at, repeated)
	collection = render(c.Template.collection, slot, at, repeated)
	if generation > 1 {
		suffix := "_" + strconv.Itoa(generation)
		if c.As == AsDatabase {
			database += suffix
		} else {
			collection += suffix
		}
	}
	return database, collection
}

// render puts a name together. Where the clocks show an hour for the second time, an r behind the hour or minute tells it from the first.
func render(pieces []piece, slot int, at time.Time, repeated bool) string {
	var b strings.Builder
	for i, p := range pieces {
		switch p.kind {
		case literal:
			b.WriteString(p.literal)
		case slotNumber:
			b.WriteString(strconv.Itoa(slot))
		case fullYear:
			fmt.Fprintf(&b, "%04d", at.Year())
		case shortYear:
			// Other centuries get the whole year, so that no name is used again.
			if at.Year()/100 == 20 {
				fmt.Fprintf(&b, "%02d", at.Year()%100)
			} else {
				fmt.Fprintf(&b, "%04d", at.Year())
			}
		case month:
			fmt.Fprintf(&b, "%02d", at.Month())
		case dayOfMonth:
			fmt.Fprintf(&b, "%02d", at.Day())
		case hour:
			fmt.Fprintf(&b, "%02d", at.Hour())
		case minute:
			fmt.Fprintf(&b, "%02d", at.Minute())
		}
		if last := i+1 == len(pieces) || pieces[i+1].kind < hour; repeated && p.kind >= hour && last {
			b.WriteByte('r')
		}
	}
	return b.String()
}

// clockRepeats reports whether a zone's clocks showed the same time before, in the period before their last change.
func clockRepeats(at time.Time) bool {
	since, _ := at.ZoneBounds()
	if since.IsZero() {
		return false
	}
	_, now := at.Zone()
	_, before := since.Add(-1).In(at.Location()).Zone()
	return at.Add(time.Duration(now-before) * time.Second).Before(since)
}

// generationRoom is how many bytes are kept free for a generation's suffix and the r of a repeated hour.
const generationRoom = 7

// checkLengths checks the longest names that a template gives, and that they are names.
func (t Template) checkLengths(slots, mostNamespace int, as As) error {
	database, collection := longest(t.database, slots), longest(t.collection, slots)
	if as == AsDatabase {
		database += generationRoom
		if database > maxDatabaseName {
			return fmt.Errorf("%q gives names of databases of up to %d bytes, and MongoDB takes fewer than 64", t.text, database)
		}
	} else {
		collection += generationRoom
	}
	if n := database + 1 + collection; n > mostNamespace {
		return fmt.Errorf("%q gives namespaces of up to %d bytes, and %d is the most", t.text, n, mostNamespace)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := checkDatabaseName(render(t.database, 0, at, false)); err != nil {
		return err
	}
	return checkCollectionName(render(t.collection, 0, at, false))
}

// meets says how two collections' partitions, or one's partitions and the other itself, could get the same name, or "".
func (c *Collection) meets(o *Collection) string {
	switch {
	case collides(c.Template.database, o.Template.database) && collides(c.Template.collection, o.Template.collection):
		return "partitions could have the names of those of " + o.Namespace()
	case collides(c.Template.database, literalName(o.Database)) && collides(c.Template.collection, literalName(o.Name)):
		return "a partition could have the name of collection " + o.Namespace()
	case collides(o.Template.database, literalName(c.Database)) && collides(o.Template.collection, literalName(c.Name)):
		return "a partition of " + o.Namespace() + " could have its name"
	}
	return ""
}

func literalName(name string) []piece { return []piece{{literal: name}} }
