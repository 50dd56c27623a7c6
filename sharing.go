package oxbow

import (
	"time"

	"oxbow/internal/catalog"
	"oxbow/internal/exec"
	"oxbow/internal/plan"
)

// sends shows a shared catalog to the executor, which must not know it.
type sends struct{ catalog *catalog.Catalog }

// sendsOf is for Executor.Sends: nil where this gateway has the catalog for itself.
func sendsOf(c *catalog.Catalog) exec.Sends {
	if !c.Shared() {
		return nil
	}
	return sends{c}
}

func (s sends) Check() error { return s.catalog.Check() }

func (s sends) Limit() time.Duration { return s.catalog.Longest() }

func (s sends) Begin(t plan.Target) (exec.Sending, error) {
	return s.catalog.Begin(t.Logical, t.Backend, t.Namespace)
}
