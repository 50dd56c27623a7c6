package route

import (
	"time"

	"oxbow/internal/bson"
)

// Layout is how a collection is split: by time, by hash, or both.
type Layout struct {
	Time *Time
	Hash *Hash
}

// Time splits by calendar cells of a zone.
type Time struct {
	Field bson.Path
	Unit  Unit
	Every Every
	Zone  *time.Location
	Ahead int           // cells beyond the current one that a document may lie in
	Keep  time.Duration // 0: for ever; see retention
	Late  Late
}

// Unit is how the field tells time.
type Unit uint8

// The units: BSON dates, integer seconds, integer milliseconds, the second inside an ObjectId.
const (
	Date Unit = iota
	Seconds
	Milliseconds
	ObjectID
)

// Every is the length of a calendar cell.
type Every uint8

// The cells.
const (
	Minute Every = iota
	Hour
	Day
	Week // begins on Monday (ISO 8601)
	Month
)

// Late says what becomes of a document whose partition retention has already hidden or dropped.
type Late uint8

// The two answers to late documents.
const (
	Reject Late = iota
	Recreate
)

// Hash splits by slots.
type Hash struct {
	Field bson.Path
	Count int
}
