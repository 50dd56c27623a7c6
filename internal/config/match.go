package config

import (
	"fmt"
	"regexp"
	"strings"
)

// Matches reports whether a physical name could be that of a partition of the collection, of any generation.
func (c *Collection) Matches(database, collection string) bool {
	return c.MatchesDatabase(database) && matchesPieces(c.Template.collection, c.As == AsCollection, collection)
}

// MatchesDatabase reports whether partitions of the collection could lie in a physical database.
func (c *Collection) MatchesDatabase(database string) bool {
	return matchesPieces(c.Template.database, c.As == AsDatabase, database)
}

func matchesPieces(pieces []piece, generations bool, name string) bool {
	var b strings.Builder
	b.WriteString("^")
	for _, p := range pieces {
		switch p.kind {
		case literal:
			b.WriteString(regexp.QuoteMeta(p.literal))
		case slotNumber:
			b.WriteString("[0-9]+")
		case shortYear:
			b.WriteString("([0-9]{2}|[0-9]{4})")
		case hour, minute:
			b.WriteString("[0-9]{2}r?")
		default:
			fmt.Fprintf(&b, "[0-9]{%d}", digits[p.kind])
		}
	}
	if generations {
		b.WriteString("(_[0-9]+)?")
	}
	b.WriteString("$")
	return regexp.MustCompile(b.String()).MatchString(name)
}
