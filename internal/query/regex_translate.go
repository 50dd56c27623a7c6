package query

import "strings"

// edits are the changes that translate makes to a pattern.
type edits uint8

const (
	dropSpace   edits = 1 << iota // option x: white space and comments don't count
	perlEnds                      // $ also before a final line feed
	perlEscapes                   // escapes of PCRE that regexp2 lacks are spelt out
)

// perlEnd is $ without option m, and \Z, as a lookahead.
const perlEnd = `(?=\n?\z)`

// spelt gives escapes outside of character classes in other words; those that no engine here knows are empty.
var spelt = map[byte]string{
	'Z': perlEnd,
	'h': `[ \t]`,
	'H': `[^ \t]`,
	'N': `[^\n]`,
	'R': `(?>\r\n|[\n\v\f\r])`,
	'K': "", 'X': "", 'C': "", 'g': "", 'k': "",
}

// translate edits a pattern of PCRE outside of its escapes, quotations and character classes. It returns "" for a pattern with an
// escape that has no translation.
func translate(pattern string, e edits) string {
	var b strings.Builder
	for i := 0; i < len(pattern); {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			n := 2
			if pattern[i+1] == 'Q' {
				n = quotation(pattern[i:])
			} else if words, ok := spelt[pattern[i+1]]; ok && e&perlEscapes != 0 {
				if words == "" {
					return ""
				}
				b.WriteString(words)
				i += n
				continue
			}
			b.WriteString(pattern[i : i+n])
			i += n
		case c == '[':
			n := class(pattern[i:])
			b.WriteString(pattern[i : i+n])
			i += n
		case c == '$' && e&perlEnds != 0:
			b.WriteString(perlEnd)
			i++
		case e&dropSpace != 0 && strings.IndexByte(" \t\n\v\f\r", c) >= 0:
			i++
		case e&dropSpace != 0 && c == '#':
			if feed := strings.IndexByte(pattern[i:], '\n'); feed >= 0 {
				i += feed + 1
			} else {
				i = len(pattern)
			}
		default:
			b.WriteByte(c)
			i++
		}
	}
	if b.Len() == 0 {
		return "(?:)"
	}
	return b.String()
}

// quotation returns the length of \Q…\E at the start of a pattern.
func quotation(pattern string) int {
	if n := strings.Index(pattern, `\E`); n >= 0 {
		return n + 2
	}
	return len(pattern)
}

// class returns the length of the character class at the start of a pattern; a bracket that closes nothing ends with it.
func class(pattern string) int {
	i := 1
	if i < len(pattern) && pattern[i] == '^' {
		i++
	}
	if i < len(pattern) && pattern[i] == ']' {
		i++
	}
	for i < len(pattern) {
		switch {
		case pattern[i] == '\\':
			i++
		case strings.HasPrefix(pattern[i:], "[:"):
			if n := strings.Index(pattern[i:], ":]"); n > 0 {
				i += n + 1
			}
		case pattern[i] == ']':
			return i + 1
		}
		i++
	}
	return len(pattern)
}
