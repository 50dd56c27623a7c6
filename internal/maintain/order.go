package maintain

import (
	"errors"
	"fmt"

	"oxbow/internal/bson"
)

// ParseOrder reads an order of a document: pause, resume, stop, now and remove are booleans, documents, bytes and priority numbers.
func ParseOrder(doc bson.Document) (o Order, remove bool, err error) {
	it := bson.Elements(doc)
	for it.Next() {
		key, v := string(it.Key()), it.Value()
		switch key {
		case "pause", "resume", "stop", "now", "remove":
			on, ok := v.BooleanOK()
			if !ok {
				return o, false, fmt.Errorf("%s must be true or false", key)
			}
			*map[string]*bool{"pause": &o.Pause, "resume": &o.Resume, "stop": &o.Stop, "now": &o.Now, "remove": &remove}[key] = on
		case "documents", "bytes":
			n, ok := v.AsFloat64OK()
			if !ok || !isLimit(&n) {
				return o, false, fmt.Errorf("%s must be a number of 0, for no limit, or more", key)
			}
			*map[string]**float64{"documents": &o.Documents, "bytes": &o.Bytes}[key] = &n
		case "priority":
			n, ok := v.AsInt64OK()
			if !ok || n < 1 || n > MaxPriority {
				return o, false, fmt.Errorf("priority must be a number from 1 to %d", MaxPriority)
			}
			p := int(n)
			o.Priority = &p
		default:
			return o, false, fmt.Errorf("there is no order %q", key)
		}
	}
	asked := 0
	for _, on := range []bool{o.Pause, o.Resume, o.Stop, remove} {
		if on {
			asked++
		}
	}
	switch {
	case asked > 1:
		return o, false, errors.New("one of pause, resume, stop and remove at a time")
	case o.Now && !o.Stop:
		return o, false, errors.New("now belongs to stop")
	case asked == 0 && o.Documents == nil && o.Bytes == nil && o.Priority == nil:
		return o, false, errors.New("the order says nothing")
	}
	return o, remove, nil
}
