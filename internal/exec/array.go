package exec

import (
	"encoding/binary"
	"strconv"

	"oxbow/internal/bson"
)

// values is an array under construction.
type values struct {
	bytes []byte // elements behind the length
	n     int
}

func (a *values) add(v bson.Value) {
	a.bytes = append(a.bytes, byte(v.Type))
	a.bytes = strconv.AppendInt(a.bytes, int64(a.n), 10)
	a.bytes = append(a.bytes, 0)
	a.bytes = append(a.bytes, v.Data...)
	a.n++
}

func (a *values) array() bson.Array {
	out := make([]byte, 4, len(a.bytes)+5)
	binary.LittleEndian.PutUint32(out, uint32(len(a.bytes)+5))
	out = append(out, a.bytes...)
	return append(out, 0)
}
