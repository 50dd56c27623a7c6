package exec

import (
	"oxbow/internal/backend"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
)

// refused is what the client gets when a target's reply is an error: MongoDB's, about the client's collection.
func (e *Executor) refused(t plan.Target, err error) error {
	known := mongoerr.From(err)
	if t.Logical == "" {
		return known
	}
	return e.onBackend(t.Backend, backend.RenameError(known, t.Namespace, t.Logical))
}

// onBackend says in the error of a command on a collection with a layout which backend it comes from. The engine of this process needs no name, and a duplicate
// key belongs to the document: applications read its message.
func (e *Executor) onBackend(name string, err *mongoerr.Error) *mongoerr.Error {
	if e.Abilities(name).Embedded || err.Code == mongoerr.DuplicateKey {
		return err
	}
	named := *err
	named.Message = "backend " + name + ": " + err.Message
	return &named
}
