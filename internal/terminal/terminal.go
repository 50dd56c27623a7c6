package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is a text in one line: each control character is written as an escape, line ends and tabs among them.
func Text(text string) string { return escaped(text, "") }

// Argument is a text as one argument of a command that is pasted into a shell.
func Argument(text string) string {
	if text != "" && !strings.ContainsAny(text, " \t\n'\"\\$`*?[]{}()<>|&;~#!") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Lines returns a writer of lines: each control character but line ends and tabs is written as an escape. Each call of Write has whole characters.
func Lines(w io.Writer) io.Writer { return lines{w} }

type lines struct{ w io.Writer }

func (l lines) Write(p []byte) (int, error) {
	if _, err := io.WriteString(l.w, escaped(string(p), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// escaped is a text with escapes for control characters but some, for the marks that turn the direction of writing, and for what is no UTF-8, which some terminals take for
// the control characters of ISO 6429 (https://www.ecma-international.org/publications-and-standards/standards/ecma-48/).
func escaped(text, but string) string {
	plain := func(r rune) bool {
		return !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r) || strings.ContainsRune(but, r)
	}
	if utf8.ValidString(text) && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case plain(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b.String()
}
