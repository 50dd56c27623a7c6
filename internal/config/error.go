package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// Error is one thing that is wrong with a file. Load and Parse join all they find, in the order of the file.
type Error struct {
	File         string
	Line, Column int    // from 1
	Key          string // dotted, "" for the file as a whole
	Message      string
}

// Error gives "file:line:column: key: message".
func (e *Error) Error() string {
	at := fmt.Sprintf("%s:%d:%d: ", e.File, e.Line, e.Column)
	if e.Key != "" {
		at += e.Key + ": "
	}
	return at + e.Message
}

// report collects what is wrong with one file.
type report struct {
	file string
	list []*Error
}

// add notes an error at a node.
func (r *report) add(at ast.Node, key, format string, args ...any) {
	e := &Error{File: r.file, Line: 1, Column: 1, Key: withoutLogin(key), Message: withoutLogin(fmt.Sprintf(format, args...))}
	if at != nil && at.GetToken() != nil && at.GetToken().Position != nil {
		p := at.GetToken().Position
		e.Line, e.Column = p.Line, p.Column
	}
	r.list = append(r.list, e)
}

// login is the user and password of a connection string, which may stand anywhere in a file by mistake.
var login = regexp.MustCompile(`(mongodb(?:\+srv)?://)[^\s"]*@`)

func withoutLogin(text string) string { return login.ReplaceAllString(text, "$1***@") }

// err returns all errors as one, or nil.
func (r *report) err() error {
	slices.SortStableFunc(r.list, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	var all []error
	for _, e := range r.list {
		all = append(all, e)
	}
	return errors.Join(all...)
}
