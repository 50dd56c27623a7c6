package command

import (
	"oxbow/internal/backend"
	"oxbow/internal/exec"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
)

// attempt plans and runs the statements of a write with the given indexes, ascending; nil: all. What it answers is numbered by their order.
type attempt func(src plan.Source, only []int32) (*backend.WriteReply, error)

// replanned runs a write of n statements, and once more those that met a partition which was dropped between their planning and their run: nothing of
// them has happened, and their place has another partition now, or can get one.
func (d *Data) replanned(src plan.Source, n int, ordered bool, run attempt) (*backend.WriteReply, error) {
	total, err := run(src, nil)
	if err != nil {
		return nil, err
	}
	for range planTries {
		again := takeStale(total, n, ordered)
		if again == nil {
			return total, nil
		}
		if src, err = d.current(src); err != nil {
			return nil, err
		}
		part, err := run(src, again)
		if err != nil {
			return nil, err
		}
		part.Renumber(again)
		total.Add(part)
	}
	if takeStale(total, n, ordered) != nil {
		return nil, mongoerr.New(mongoerr.StaleConfig, "partitions of %s were dropped as fast as they were made", src.Namespace())
	}
	return total, nil
}

// takeStale takes the errors of statements that met a dropped partition out of a reply, and returns which statements are to be run again: with ordered
// all from the first on, since nothing behind it was tried.
func takeStale(r *backend.WriteReply, n int, ordered bool) (again []int32) {
	kept := r.Errors[:0]
	for _, e := range r.Errors {
		switch {
		case e.Err.Code != mongoerr.StaleConfig:
			kept = append(kept, e)
		case ordered:
			for i := e.Index; int(i) < n; i++ {
				again = append(again, i)
			}
		default:
			again = append(again, e.Index)
		}
	}
	r.Errors = kept
	return again
}

// current returns a source as the catalog has it now.
func (d *Data) current(src plan.Source) (plan.Source, error) {
	if src.Collection = d.Catalog.Snapshot().Collection(src.Namespace()); src.Collection == nil {
		return src, mongoerr.New(mongoerr.StaleConfig, "the layout of %s was removed during the write", src.Namespace())
	}
	return src, nil
}

// pick returns the elements with the given indexes; nil: all.
func pick[T any](all []T, only []int32) []T {
	if only == nil {
		return all
	}
	out := make([]T, len(only))
	for i, n := range only {
		out[i] = all[n]
	}
	return out
}

// numbered makes the options of a whole write those of some of its statements.
func numbered(o exec.Options, only []int32) exec.Options {
	if o.Retry == nil || only == nil {
		return o
	}
	r := *o.Retry
	whole := r.Stmt
	r.Stmt = func(i int32) int32 { return whole(only[i]) }
	o.Retry = &r
	return o
}
