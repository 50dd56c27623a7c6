package query

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/dlclark/regexp2/v2"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// matcher is a compiled regular expression.
type matcher interface {
	match(text []byte) (bool, error)
}

// linear is Go's engine: its time is linear in the text's length.
type linear struct{ *regexp.Regexp }

func (m linear) match(text []byte) (bool, error) { return m.Match(text), nil }

// backtrackLimit is how long one value may take a pattern with backtracking.
const backtrackLimit = time.Second

// backtracking is the engine for patterns that Go's does not take: lookaround, back-references, atomic groups.
type backtracking struct {
	*regexp2.Regexp
	shown string
}

func (m backtracking) match(text []byte) (bool, error) {
	ok, err := m.MatchString(string(text))
	if err != nil {
		return false, mongoerr.New(mongoerr.OperationFailed, "the regular expression %s backtracks too much: %s", m.shown, err)
	}
	return ok, nil
}

// NewRegex compiles the predicate {path: /pattern/options}. Options are i, m, s, x and u. Patterns are those of PCRE without
// Unicode properties of \w, \d and \s, as in MongoDB; what neither engine takes is error 51091.
func NewRegex(path bson.Path, pattern, options string) (*Regex, error) {
	if strings.IndexByte(pattern, 0) >= 0 {
		return nil, mongoerr.New(mongoerr.BadValue, "Regular expression cannot contain an embedded null byte")
	}
	if strings.IndexByte(options, 0) >= 0 {
		return nil, mongoerr.New(mongoerr.BadValue, "Regular expression options string cannot contain an embedded null byte")
	}
	for _, c := range options {
		if !strings.ContainsRune("imsxu", c) {
			return nil, mongoerr.New(mongoerr.RegexFlagInvalid, "invalid flag in regex options: %c", c)
		}
	}
	n := &Regex{Path: path, Pattern: pattern, Options: options}
	tree, err := parseRegex(pattern, options)
	if err == nil {
		n.Prefix = literalPrefix(tree)
		var re *regexp.Regexp
		if re, err = regexp.Compile(tree.String()); err == nil {
			n.re = linear{re}
			return n, nil
		}
	}
	if n.re, err = compileBacktracking(pattern, options, err); err != nil {
		return nil, mongoerr.New(mongoerr.RegexInvalid, "Regular expression is invalid: %s", err)
	}
	n.Prefix = ""
	return n, nil
}

// parseRegex parses a pattern for Go's engine, with PCRE's meaning of $.
func parseRegex(pattern, options string) (*syntax.Regexp, error) {
	flags := syntax.Perl
	for _, c := range options {
		switch c {
		case 'i':
			flags |= syntax.FoldCase
		case 'm':
			flags &^= syntax.OneLine
		case 's':
			flags |= syntax.DotNL
		case 'x':
			pattern = translate(pattern, dropSpace)
		}
	}
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, err
	}
	return widenEnds(tree), nil
}

// widenEnds lets $ match before a final line feed too, as PCRE's does. What comes behind a $ can only be that line feed, so it may be consumed.
func widenEnds(tree *syntax.Regexp) *syntax.Regexp {
	for i, sub := range tree.Sub {
		tree.Sub[i] = widenEnds(sub)
	}
	if tree.Op != syntax.OpEndText || tree.Flags&syntax.WasDollar == 0 {
		return tree
	}
	feed := &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{'\n'}}
	return &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{
		{Op: syntax.OpQuest, Sub: []*syntax.Regexp{feed}},
		{Op: syntax.OpEndText},
	}}
}

// literalPrefix returns the text that every match must start with, where the pattern begins with ^ and literals.
func literalPrefix(tree *syntax.Regexp) string {
	if tree.Op != syntax.OpConcat || tree.Sub[0].Op != syntax.OpBeginText {
		return ""
	}
	var prefix strings.Builder
	for _, sub := range tree.Sub[1:] {
		if sub.Op != syntax.OpLiteral || sub.Flags&syntax.FoldCase != 0 {
			break
		}
		prefix.WriteString(string(sub.Rune))
	}
	return prefix.String()
}

// compileBacktracking compiles a pattern that Go's engine refused with the error refusal. That error stands unless the
// pattern uses what only backtracking can do, so that the engines don't add up to a language of their own.
func compileBacktracking(pattern, options string, refusal error) (matcher, error) {
	var e *syntax.Error
	if !errors.As(refusal, &e) {
		return nil, refusal
	}
	switch e.Code {
	case syntax.ErrInvalidPerlOp, syntax.ErrInvalidEscape, syntax.ErrInvalidRepeatOp, syntax.ErrInvalidRepeatSize,
		syntax.ErrInvalidNamedCapture: // (?<= looks like one
	default:
		return nil, refusal
	}
	flags, edits := regexp2.RegexOptions(regexp2.RE2), perlEscapes|perlEnds
	for _, c := range options {
		switch c {
		case 'i':
			flags |= regexp2.IgnoreCase
		case 'm':
			flags |= regexp2.Multiline
			edits &^= perlEnds
		case 's':
			flags |= regexp2.Singleline
		case 'x':
			edits |= dropSpace
		}
	}
	translated := translate(pattern, edits)
	if translated == "" && pattern != "" {
		return nil, refusal
	}
	re, err := regexp2.Compile(translated, flags)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = backtrackLimit
	return backtracking{re, quoted(pattern, options)}, nil
}

func (n *Regex) match(doc []byte) (bool, int, error) { return find(n.Path, doc, true, n) }

// test matches strings, and the same regular expression as a value.
func (n *Regex) test(v bson.Value) (bool, error) {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol:
		if len(v.Data) >= 5 {
			return n.re.match(v.Data[4 : len(v.Data)-1])
		}
	case bson.TypeRegex:
		pattern, options, ok := v.RegexOK()
		return ok && pattern == n.Pattern && options == n.Options, nil
	}
	return false, nil
}
