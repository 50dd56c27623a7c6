package command

import (
	"context"
	"math"

	"oxbow/internal/plan"
	"oxbow/internal/statement"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// count answers count. The result is exact on any layout: partitions are disjoint and nothing migrates.
func (d *Data) count(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forward(ctx, a.source.Backend, req, reply)
	}
	c, err := statement.ParseCount(req.Body)
	if err != nil {
		return err
	}
	p, err := plan.NewCount(c, a.source, d.env())
	if err != nil {
		return err
	}
	n, err := d.Exec.Count(ctx, p)
	if err != nil {
		return err
	}
	reply.Elements = appendCount(reply.Elements, "n", n)
	return nil
}

// appendCount appends a number as an int where it fits, as MongoDB does, else as a long.
func appendCount(dst []byte, key string, n int64) []byte {
	if n > math.MaxInt32 {
		return bsoncore.AppendInt64Element(dst, key, n)
	}
	return bsoncore.AppendInt32Element(dst, key, int32(n))
}

// distinct answers distinct.
func (d *Data) distinct(ctx context.Context, req *Request, reply *Reply) error {
	a, err := d.collection(req)
	if err != nil {
		return err
	}
	if a.source.Collection == nil {
		return d.forward(ctx, a.source.Backend, req, reply)
	}
	s, err := statement.ParseDistinct(req.Body)
	if err != nil {
		return err
	}
	p, err := plan.NewDistinct(s, a.source, d.env())
	if err != nil {
		return err
	}
	values, err := d.Exec.Distinct(ctx, p)
	if err != nil {
		return err
	}
	reply.Elements = bsoncore.AppendArrayElement(reply.Elements, "values", values)
	return nil
}
