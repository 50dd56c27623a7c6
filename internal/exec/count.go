package exec

import (
	"context"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"
)

// Count runs a count on all its targets and returns the result.
func (e *Executor) Count(ctx context.Context, p *plan.Count) (int64, error) {
	counts := make([]int64, len(p.Routed.Targets))
	err := e.each(ctx, p.Routed.Targets, p.Command, func(i int, reply bson.Document) error {
		n, ok := bson.Get(reply, "n")
		if !ok {
			return mongoerr.New(mongoerr.InternalError, "backend %s gave no count", p.Routed.Targets[i].Backend)
		}
		counts[i], _ = n.AsInt64OK()
		return nil
	})
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, n := range counts {
		sum += n
	}
	return p.Of(sum), nil
}
