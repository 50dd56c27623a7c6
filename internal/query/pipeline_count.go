package query

import (
	"strings"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// countStage is $count. No documents give no result, not a zero.
type countStage struct{ field string }

func parseCount(arg bson.Value) (stage, error) {
	field, ok := stringOf(arg)
	switch {
	case !ok || arg.Type != bson.TypeString:
		return nil, mongoerr.New(40156, "the count field must be a non-empty string")
	case field == "":
		return nil, mongoerr.New(40157, "the count field must be a non-empty string")
	case field[0] == '$':
		return nil, mongoerr.New(40158, "the count field cannot be a $-prefixed path")
	case strings.IndexByte(field, 0) >= 0:
		return nil, mongoerr.New(40159, "the count field cannot contain a null byte")
	case strings.Contains(field, "."):
		return nil, mongoerr.New(40160, "the count field cannot contain '.'")
	}
	return &countStage{field}, nil
}

func (*countStage) name() string { return "$count" }

func (c *countStage) run(in Documents) Documents {
	n := int64(0)
	return &gathered{
		in:  in,
		add: func(*Scratch, bson.Document) error { n++; return nil },
		next: func(s *Scratch) (bson.Document, error) {
			if n == 0 {
				return nil, nil
			}
			doc := wrapValue(nil, c.field, s.intOrLong(n))
			n = 0
			return doc, nil
		},
	}
}

// parseSortByCount compiles $sortByCount as MongoDB defines it: a $group that counts, then a $sort.
func parseSortByCount(arg bson.Value, opts *PipelineOptions) ([]stage, error) {
	switch arg.Type {
	case bson.TypeString:
		if text := textOf(arg); !strings.HasPrefix(text, "$") {
			return nil, mongoerr.New(40148, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
		}
	case bson.TypeDocument:
		if key, _, _ := bson.First(arg.Data); !strings.HasPrefix(key, "$") {
			return nil, mongoerr.New(40147, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
		}
	default:
		return nil, mongoerr.New(40149, "the sortByCount field must be specified as a string or as an object")
	}
	var s Scratch
	sum, err := s.document([]field{{"$sum", s.int32(1)}})
	if err != nil {
		return nil, err
	}
	spec, err := s.document([]field{{"_id", arg}, {"count", sum}})
	if err != nil {
		return nil, err
	}
	group, err := parseGroup(spec, opts)
	if err != nil {
		return nil, err
	}
	order, err := s.document([]field{{"count", s.int32(-1)}})
	if err != nil {
		return nil, err
	}
	sort, err := parseSortStage(order, opts)
	return []stage{group, sort}, err
}
