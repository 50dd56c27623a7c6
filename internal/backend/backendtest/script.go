package backendtest

import (
	"bufio"
	"fmt"
	"strings"
)

// A script is a text of cases:
//
//	== the name of a case, and a database of its own
//	> {"insert": "c", "documents": [{"_id": 1}]}
//	< {"n": 1, "ok": 1.0}
//	> {"find": "c", "filter": {"$bad": 1}}
//	! BadValue: unknown top level operator
//
// Lines that begin with a space go on with the line before; # begins a comment. A command (>) is relaxed Extended JSON; $db is the case's
// database unless it says otherwise. A reply (<) is Extended JSON as well, compared by value and type: fields may come
// in any order, but for documents inside arrays and below "value". An error (!) is a code's name, and a part of the message. In all of
// them <db> stands for the case's database.
//
// In place of a value a reply may have "<any>", the name of a type as in "<long>", "<number>", "<ended>" for the cursor id 0, or
// "<$name>", which binds the value: there and in later commands the name stands for it. The field "..." allows fields that are not listed.
// A case whose name ends in [embedded] is not run elsewhere.
type script struct{ cases []scriptCase }

type scriptCase struct {
	name     string
	embedded bool
	steps    []step
}

// step is one command and what is expected of it.
type step struct {
	line    int
	command string
	expect  string
	failure bool // expect is an error
}

// parseScript reads a script.
func parseScript(text string) (*script, error) {
	s := &script{}
	in := bufio.NewScanner(strings.NewReader(text))
	in.Buffer(nil, 1<<20)
	var open *string // what a continuation line belongs to
	for line := 1; in.Scan(); line++ {
		l := in.Text()
		mark, rest, _ := strings.Cut(l, " ")
		switch {
		case l == "" || mark == "#":
			open = nil
		case mark == "" && open != nil:
			*open += l
		case mark == "==":
			s.cases = append(s.cases, newCase(rest))
			open = nil
		case len(s.cases) == 0:
			return nil, fmt.Errorf("line %d: no case yet", line)
		default:
			var err error
			if open, err = s.cases[len(s.cases)-1].add(line, mark, rest); err != nil {
				return nil, err
			}
		}
	}
	return s, in.Err()
}

func newCase(name string) scriptCase {
	name, embedded := strings.CutSuffix(name, " [embedded]")
	return scriptCase{name: name, embedded: embedded}
}

// add takes a line that begins with a mark and returns where its continuation goes.
func (c *scriptCase) add(line int, mark, rest string) (*string, error) {
	if mark == ">" {
		c.steps = append(c.steps, step{line: line, command: rest})
		return &c.steps[len(c.steps)-1].command, nil
	}
	if mark != "<" && mark != "!" {
		return nil, fmt.Errorf("line %d: unknown mark %q", line, mark)
	}
	if len(c.steps) == 0 || c.steps[len(c.steps)-1].expect != "" {
		return nil, fmt.Errorf("line %d: an expectation without its command", line)
	}
	last := &c.steps[len(c.steps)-1]
	last.expect, last.failure = rest, mark == "!"
	return &last.expect, nil
}
