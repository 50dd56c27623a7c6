package query

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// regexNode is $regexMatch, $regexFind and $regexFindAll.
type regexNode struct {
	name                  string
	input, regex, options node
	fixed                 *Regex // of a constant pattern
	result                func(n *regexNode, s *Scratch, re *Regex, text []byte) (bson.Value, error)
	null                  bson.Value // result where input or pattern is null
}

func (n *regexNode) eval(s *Scratch) (bson.Value, error) {
	input, err := n.input.eval(s)
	if err != nil {
		return input, err
	}
	if !nullish(input) && input.Type != bson.TypeString {
		return input, mongoerr.New(51104, "%s needs 'input' to be of type string", n.name)
	}
	re := n.fixed
	if re == nil {
		if re, err = n.compiled(s); err != nil {
			return input, err
		}
	}
	if re == nil || nullish(input) {
		return n.null, nil
	}
	return n.result(n, s, re, bytesOf(input))
}

// compiled evaluates and compiles the pattern; nil without an error where it is null.
func (n *regexNode) compiled(s *Scratch) (*Regex, error) {
	pattern, err := n.regex.eval(s)
	if err != nil {
		return nil, err
	}
	options := bson.Null
	if n.options != nil {
		if options, err = n.options.eval(s); err != nil {
			return nil, err
		}
	}
	if !nullish(options) && options.Type != bson.TypeString {
		return nil, mongoerr.New(51106, "%s needs 'options' to be of type string", n.name)
	}
	flags := ""
	if !nullish(options) {
		flags = textOf(options)
	}
	var text string
	switch {
	case pattern.Type == bson.TypeString:
		text = textOf(pattern)
	case pattern.Type == bson.TypeRegex:
		p, own, _ := bytes.Cut(pattern.Data, []byte{0})
		own = bytes.TrimSuffix(own, []byte{0})
		if len(own) > 0 && !nullish(options) {
			return nil, mongoerr.New(51107, "%s: found regex option(s) specified in both 'regex' and 'option' fields", n.name)
		}
		if text = string(p); len(own) > 0 {
			flags = string(own)
		}
	case !nullish(pattern):
		return nil, mongoerr.New(51105, "%s needs 'regex' to be of type string or regex", n.name)
	default:
		_, err := compilePattern(n.name, "", flags)
		return nil, err
	}
	return compilePattern(n.name, text, flags)
}

func buildRegex(null bson.Value, result func(n *regexNode, s *Scratch, re *Regex, text []byte) (bson.Value, error)) builder {
	return func(c *compiler, name string, arg bson.Value) (node, error) {
		args, err := params(arg, mongoerr.New(51103, "%s expects an object of named arguments but found: %s", name, bson.TypeName(arg.Type)), func(f string) error {
			return mongoerr.New(31024, "%s found an unknown argument: %s", name, f)
		}, "input", "regex", "options")
		if err != nil {
			return nil, err
		}
		n := &regexNode{name: name, result: result, null: null}
		if n.input, err = c.optional(args, "input"); err != nil {
			return nil, err
		}
		before := c.dynamic
		if err := c.optionals(args, map[string]*node{"regex": &n.regex, "options": &n.options}); err != nil {
			return nil, err
		}
		switch {
		case n.input == nil:
			return nil, mongoerr.New(31022, "%s requires 'input' parameter", name)
		case n.regex == nil:
			return nil, mongoerr.New(31023, "%s requires 'regex' parameter", name)
		case c.dynamic == before:
			n.fixed, err = n.compiled(&Scratch{})
		}
		return n, err
	}
}

func regexMatch(_ *regexNode, _ *Scratch, re *Regex, text []byte) (bson.Value, error) {
	ok, err := re.re.match(text)
	return boolean(ok), err
}

func regexFind(_ *regexNode, s *Scratch, re *Regex, text []byte) (bson.Value, error) {
	found, err := re.search(text, 1)
	if err != nil || len(found) == 0 {
		return bson.Null, err
	}
	return s.regexHit(text, found[0], utf8.RuneCount(text[:found[0][0]]))
}

// regexHit builds {match, idx, captures}; idx counts characters.
func (s *Scratch) regexHit(text []byte, at []int, idx int) (bson.Value, error) {
	match, err := s.text(text[at[0]:at[1]])
	if err != nil {
		return match, err
	}
	mark := len(s.stack)
	for i := 2; i < len(at); i += 2 {
		capture := bson.Null
		if at[i] >= 0 {
			if capture, err = s.text(text[at[i]:at[i+1]]); err != nil {
				return capture, err
			}
		}
		s.push(capture)
	}
	captures, err := s.popArray(mark)
	if err != nil {
		return captures, err
	}
	return s.document([]field{{"match", match}, {"idx", s.int32(int32(idx))}, {"captures", captures}})
}

func regexFindAll(n *regexNode, s *Scratch, re *Regex, text []byte) (bson.Value, error) {
	mark := len(s.stack)
	found, err := re.search(text, -1)
	if err != nil {
		return bson.Null, err
	}
	idx, counted := 0, 0
	for _, at := range found {
		if at[0] == len(text) && len(text) > 0 { // MongoDB stops at the end of the input
			break
		}
		idx += utf8.RuneCount(text[counted:at[0]])
		counted = at[0]
		v, err := s.regexHit(text, at, idx)
		if err != nil {
			return v, err
		}
		if err := s.step(); err != nil {
			return v, err
		}
		s.push(v)
	}
	return s.popArray(mark)
}

// compilePattern compiles a pattern for an operator.
func compilePattern(operator, pattern, options string) (*Regex, error) {
	if strings.IndexByte(pattern, 0) >= 0 {
		return nil, mongoerr.New(51109, "%s: regular expression cannot contain an embedded null byte", operator)
	}
	if strings.IndexByte(options, 0) >= 0 {
		return nil, mongoerr.New(51110, "%s: regular expression options cannot contain an embedded null byte", operator)
	}
	re, err := NewRegex(bson.Path{}, pattern, options)
	switch {
	case mongoerr.Is(err, mongoerr.RegexInvalid):
		return nil, mongoerr.New(51111, "Invalid Regex in %s: %s", operator, mongoerr.From(err).Message)
	case err != nil:
		return nil, mongoerr.New(mongoerr.From(err).Code, "%s %s", operator, mongoerr.From(err).Message)
	}
	return re, nil
}

// searcher finds where a regular expression matches: for each match the byte offsets of its beginning and its end, then those of its groups, -1
// for a group that took no part.
type searcher interface {
	search(text []byte, most int) ([][]int, error)
}

func (m linear) search(text []byte, most int) ([][]int, error) {
	return m.FindAllSubmatchIndex(text, most), nil
}

func (m backtracking) search(text []byte, most int) (found [][]int, err error) {
	match, err := m.FindStringMatch(string(text))
	for err == nil && match != nil && len(found) != most {
		var at []int
		for _, g := range match.Groups() {
			if len(g.Captures) == 0 {
				at = append(at, -1, -1)
				continue
			}
			from := skipRunes(text, g.RuneIndex)
			at = append(at, from, from+skipRunes(text[from:], g.RuneLength))
		}
		found = append(found, at)
		match, err = m.FindNextMatch(match)
	}
	if err != nil {
		return nil, mongoerr.New(mongoerr.OperationFailed, "the regular expression %s backtracks too much: %s", m.shown, err)
	}
	return found, nil
}

// search finds at most so many matches; -1 is all.
func (n *Regex) search(text []byte, most int) ([][]int, error) {
	return n.re.(searcher).search(text, most)
}
