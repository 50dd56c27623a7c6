package query

import (
	"context"
	"encoding/binary"
	"math"
	"strconv"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// maxScratch bounds what one evaluation may build, in bytes: four times what MongoDB lets one value have (64 MiB).
const maxScratch = 256 << 20

// keepScratch is the largest buffer that is kept for the next evaluation.
const keepScratch = 1 << 20

// Scratch is memory that one evaluation after another reuses; not for concurrent use. The zero value is ready.
type Scratch struct {
	doc   bson.Document
	vars  []bson.Value
	stack []bson.Value // values on their way into an array, a document or an argument list
	buf   []byte       // the chunk that is being filled; full ones live on in the values that alias them
	used  int
	steps int
	ctx   context.Context // ends a long evaluation; nil for none
}

// field is one element of a document under construction.
type field struct {
	name  string
	value bson.Value
}

var (
	valueTrue  = bson.Value{Type: bson.TypeBoolean, Data: []byte{1}}
	valueFalse = bson.Value{Type: bson.TypeBoolean, Data: []byte{0}}
	emptyArray = bson.Value{Type: bson.TypeArray, Data: []byte{5, 0, 0, 0, 0}}
)

func (s *Scratch) reset(doc bson.Document, slots int) {
	s.doc = doc
	s.used = 0
	s.stack = s.stack[:0]
	if cap(s.buf) > keepScratch {
		s.buf = nil
	}
	s.buf = s.buf[:0]
	for len(s.vars) < slots {
		s.vars = append(s.vars, bson.Value{})
	}
}

// step is called once an iteration of everything that loops over data.
func (s *Scratch) step() error {
	if s.steps++; s.steps&1023 == 0 && s.ctx != nil {
		return s.ctx.Err()
	}
	return nil
}

// grab returns an empty slice with room for n bytes that stay where they are until the next evaluation.
func (s *Scratch) grab(n int) ([]byte, error) {
	if s.used+n > maxScratch {
		return nil, mongoerr.New(mongoerr.ExceededMemoryLimit, "an expression used too much memory and cannot spill to disk. Memory limit: %d bytes", maxScratch)
	}
	return s.grabSmall(n), nil
}

// grabSmall is grab for values of a fixed size.
func (s *Scratch) grabSmall(n int) []byte {
	s.used += n
	if cap(s.buf)-len(s.buf) < n {
		s.buf = make([]byte, 0, max(n, min(2*cap(s.buf), keepScratch), 512))
	}
	at := len(s.buf)
	s.buf = s.buf[:at+n]
	return s.buf[at : at : at+n]
}

func boolean(b bool) bson.Value {
	if b {
		return valueTrue
	}
	return valueFalse
}

func (s *Scratch) int32(i int32) bson.Value {
	return bson.Value{Type: bson.TypeInt32, Data: binary.LittleEndian.AppendUint32(s.grabSmall(4), uint32(i))}
}

func (s *Scratch) word(t bson.Type, u uint64) bson.Value {
	return bson.Value{Type: t, Data: binary.LittleEndian.AppendUint64(s.grabSmall(8), u)}
}

func (s *Scratch) int64(i int64) bson.Value     { return s.word(bson.TypeInt64, uint64(i)) }
func (s *Scratch) double(f float64) bson.Value  { return s.word(bson.TypeDouble, math.Float64bits(f)) }
func (s *Scratch) date(millis int64) bson.Value { return s.word(bson.TypeDateTime, uint64(millis)) }
func (s *Scratch) intOrLong(i int64) bson.Value {
	if i == int64(int32(i)) {
		return s.int32(int32(i))
	}
	return s.int64(i)
}

// text copies b into a string value.
func (s *Scratch) text(b []byte) (bson.Value, error) {
	dst, err := s.grab(len(b) + 5)
	if err != nil {
		return bson.Value{}, err
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(b)+1))
	dst = append(append(dst, b...), 0)
	return bson.Value{Type: bson.TypeString, Data: dst}, nil
}

// array builds an array of values; missing ones become null.
func (s *Scratch) array(values []bson.Value) (bson.Value, error) {
	size := 5
	for i := range values {
		size += 2 + digits(i) + len(values[i].Data)
	}
	dst, err := s.grab(size)
	if err != nil {
		return bson.Value{}, err
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	for i, v := range values {
		t := v.Type
		if t == 0 {
			t = bson.TypeNull
		}
		dst = append(dst, byte(t))
		dst = strconv.AppendInt(dst, int64(i), 10)
		dst = append(append(dst, 0), v.Data...)
	}
	return bson.Value{Type: bson.TypeArray, Data: append(dst, 0)}, nil
}

// popArray builds an array of what is on the stack above mark and takes it off.
func (s *Scratch) popArray(mark int) (bson.Value, error) {
	v, err := s.array(s.stack[mark:])
	s.stack = s.stack[:mark]
	return v, err
}

func (s *Scratch) push(v bson.Value) { s.stack = append(s.stack, v) }

// pushElements puts the elements of an array on the stack and returns how many there are.
func (s *Scratch) pushElements(array []byte) int {
	n := 0
	it := bson.Elements(array)
	for it.Next() {
		s.push(it.Value())
		n++
	}
	return n
}

// document builds a document of fields; missing ones are left out.
func (s *Scratch) document(fields []field) (bson.Value, error) {
	size := 5
	for i := range fields {
		if fields[i].value.Type != 0 {
			size += 2 + len(fields[i].name) + len(fields[i].value.Data)
		}
	}
	dst, err := s.grab(size)
	if err != nil {
		return bson.Value{}, err
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(size))
	for i := range fields {
		dst = appendField(dst, fields[i].name, fields[i].value)
	}
	return bson.Value{Type: bson.TypeDocument, Data: append(dst, 0)}, nil
}

// appendField appends one element; a missing value appends nothing.
func appendField(dst []byte, name string, v bson.Value) []byte {
	if v.Type == 0 {
		return dst
	}
	dst = append(dst, byte(v.Type))
	dst = append(append(dst, name...), 0)
	return append(dst, v.Data...)
}

// digits returns the length of i in decimal.
func digits(i int) int {
	n := 1
	for ; i >= 10; i /= 10 {
		n++
	}
	return n
}
