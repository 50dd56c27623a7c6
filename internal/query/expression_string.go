package query

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

func evalConcat(s *Scratch, args []bson.Value) (bson.Value, error) {
	size := 0
	for _, v := range args {
		if nullish(v) {
			return bson.Null, nil
		}
		if v.Type != bson.TypeString {
			return v, mongoerr.New(16702, "$concat only supports strings, not %s", bson.TypeName(v.Type))
		}
		size += len(v.Data) - 5
	}
	dst, err := s.grab(size + 5)
	if err != nil {
		return bson.Value{}, err
	}
	dst = append(dst, byte(size+1), byte((size+1)>>8), byte((size+1)>>16), byte((size+1)>>24))
	for _, v := range args {
		dst = append(dst, bytesOf(v)...)
	}
	return bson.Value{Type: bson.TypeString, Data: append(dst, 0)}, nil
}

// asText is how $toLower, $substr and the like see a value: strings, numbers, dates and timestamps as text, null as nothing.
func asText(v bson.Value) ([]byte, error) {
	switch v.Type {
	case bson.TypeString, bson.TypeSymbol, bson.TypeJavaScript:
		return bytesOf(v), nil
	case bson.TypeDouble:
		return []byte(formatDouble(doubleOf(v))), nil
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		n, _ := bson.NumberOf(v)
		return []byte(n.String()), nil
	case bson.TypeDateTime:
		return []byte(isoText(intOf(v))), nil
	case bson.TypeTimestamp:
		return []byte(timestampText(v)), nil
	case bson.TypeNull, bson.TypeUndefined, 0:
		return nil, nil
	}
	return nil, mongoerr.New(16007, "can't convert from BSON type %s to String", bson.TypeName(v.Type))
}

// changeCase is $toLower and $toUpper: of ASCII letters only, as in MongoDB.
func changeCase(from, to byte) func(s *Scratch, v bson.Value) (bson.Value, error) {
	return func(s *Scratch, v bson.Value) (bson.Value, error) {
		b, err := asText(v)
		if err != nil {
			return v, err
		}
		out, err := s.text(b)
		if err != nil {
			return v, err
		}
		b = bytesOf(out)
		for i, ch := range b {
			if ch >= from && ch < from+26 {
				b[i] = ch - from + to
			}
		}
		return out, nil
	}
}

func evalStrcasecmp(s *Scratch, a, b bson.Value) (bson.Value, error) {
	x, err := asText(a)
	if err != nil {
		return a, err
	}
	y, err := asText(b)
	if err != nil {
		return b, err
	}
	return s.int32(int32(strings.Compare(upperASCII(x), upperASCII(y)))), nil
}

func upperASCII(b []byte) string {
	out := bytes.Clone(b)
	for i, ch := range out {
		if ch >= 'a' && ch <= 'z' {
			out[i] = ch - 32
		}
	}
	return string(out)
}

func continuation(b byte) bool { return b&0xc0 == 0x80 }

func evalSubstrBytes(s *Scratch, args []bson.Value) (bson.Value, error) {
	b, err := asText(args[0])
	if err != nil {
		return args[0], err
	}
	if !bson.IsNumber(args[1].Type) {
		return args[1], mongoerr.New(16034, "$substrBytes:  starting index must be a numeric type (is BSON type %s)", bson.TypeName(args[1].Type))
	}
	if !bson.IsNumber(args[2].Type) {
		return args[2], mongoerr.New(16035, "$substrBytes:  length must be a numeric type (is BSON type %s)", bson.TypeName(args[2].Type))
	}
	from, length := truncated(args[1]), truncated(args[2])
	if from < 0 {
		return args[1], mongoerr.New(50752, "$substrBytes:  starting index must be non-negative (got: %d)", from)
	}
	size := int64(len(b))
	if length < 0 || length > size {
		length = size
	}
	if from >= size {
		return s.text(nil)
	}
	to := min(from+length, size)
	if continuation(b[from]) {
		return args[0], mongoerr.New(28656, "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.")
	}
	if to < size && continuation(b[to]) {
		return args[0], mongoerr.New(28657, "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character.")
	}
	return s.text(b[from:to])
}

// truncated returns a number without its fraction, held within 64 bits; 0 for NaN.
func truncated(v bson.Value) int64 {
	n, _ := bson.NumberOf(v)
	if i, ok := n.TruncInt64(); ok {
		return i
	}
	switch n.Sign() {
	case -1:
		return -1 << 63
	case 1:
		return 1<<63 - 1
	}
	return 0
}

func evalSubstrCP(s *Scratch, args []bson.Value) (bson.Value, error) {
	b, err := asText(args[0])
	if err != nil {
		return args[0], err
	}
	from, err := substrCPIndex("starting index", args[1], 34450)
	if err != nil {
		return args[1], err
	}
	length, err := substrCPIndex("length", args[2], 34452)
	switch {
	case err != nil:
		return args[2], err
	case length < 0:
		return args[2], mongoerr.New(34454, "$substrCP: length must be a nonnegative integer.")
	case from < 0:
		return args[1], mongoerr.New(34455, "$substrCP: the starting index must be nonnegative integer.")
	}
	start := skipRunes(b, from)
	return s.text(b[start : start+skipRunes(b[start:], length)])
}

// substrCPIndex reads an index; code is that of a wrong type, code+1 that of a value out of range.
func substrCPIndex(what string, v bson.Value, code mongoerr.Code) (int, error) {
	if !bson.IsNumber(v.Type) {
		return 0, mongoerr.New(code, "$substrCP: %s must be a numeric type (is BSON type %s)", what, bson.TypeName(v.Type))
	}
	i, ok := whole32(v)
	if !ok {
		return 0, mongoerr.New(code+1, "$substrCP: %s cannot be represented as a 32-bit integral value: %s", what, show(v))
	}
	return i, nil
}

// skipRunes returns the length in bytes of the first n characters of b, or of all if it has fewer.
func skipRunes(b []byte, n int) int {
	at := 0
	for ; n > 0 && at < len(b); n-- {
		_, size := utf8.DecodeRune(b[at:])
		at += size
	}
	return at
}

// length is $strLenBytes and $strLenCP.
func length(name string, code mongoerr.Code, count func([]byte) int) builder {
	return unary(func(s *Scratch, v bson.Value) (bson.Value, error) {
		if v.Type != bson.TypeString {
			return v, mongoerr.New(code, "%s requires a string argument, found: %s", name, bson.TypeName(v.Type))
		}
		return s.int32(int32(count(bytesOf(v)))), nil
	})
}

func evalSplit(s *Scratch, a, b bson.Value) (bson.Value, error) {
	if nullish(a) || nullish(b) {
		return bson.Null, nil
	}
	for i, v := range []bson.Value{a, b} {
		if v.Type != bson.TypeString {
			return v, mongoerr.New(mongoerr.Code(40085+i), "$split requires an expression that evaluates to a string as a %s argument, found: %s", ordinals[i], bson.TypeName(v.Type))
		}
	}
	text, sep := bytesOf(a), bytesOf(b)
	if len(sep) == 0 {
		return b, mongoerr.New(40087, "$split requires a non-empty separator")
	}
	mark := len(s.stack)
	for {
		part, rest, found := bytes.Cut(text, sep)
		v, err := s.text(part)
		if err != nil {
			return v, err
		}
		s.push(v)
		if !found {
			return s.popArray(mark)
		}
		text = rest
	}
}

var ordinals = [...]string{"first", "second", "third"}

// indexOf is $indexOfBytes and $indexOfCP; code is that of a first argument that is no string.
func indexOf(name string, code mongoerr.Code, characters bool) builder {
	return nary(2, 4, func(s *Scratch, args []bson.Value) (bson.Value, error) {
		if nullish(args[0]) {
			return bson.Null, nil
		}
		for i, v := range args[:2] {
			if v.Type != bson.TypeString {
				return v, mongoerr.New(code+mongoerr.Code(i), "%s requires a string as the %s argument, found: %s", name, ordinals[i], bson.TypeName(v.Type))
			}
		}
		text, token := bytesOf(args[0]), bytesOf(args[1])
		size := len(text)
		if characters {
			size = utf8.RuneCount(text)
		}
		from, to, err := searchRange(name, args[2:], size)
		if err != nil {
			return args[0], err
		}
		if from > size || to < from {
			return s.int32(-1), nil
		}
		if !characters {
			return s.int32(int32(foundAt(text[:to], token, from))), nil
		}
		start := skipRunes(text, from)
		end := start + skipRunes(text[start:], to-from)
		at := foundAt(text[:end], token, start)
		if at >= 0 {
			at = from + utf8.RuneCount(text[start:at])
		}
		return s.int32(int32(at)), nil
	})
}

func foundAt(text, token []byte, from int) int {
	at := bytes.Index(text[from:], token)
	if at < 0 {
		return -1
	}
	return from + at
}

// searchRange reads the optional start and end of the $indexOf operators; the end is held within size.
func searchRange(name string, args []bson.Value, size int) (from, to int, err error) {
	to = size
	for i, v := range args {
		what := []string{"starting index", "ending index"}[i]
		n, ok := whole32(v)
		if !ok {
			return 0, 0, mongoerr.New(40096, "%s requires an integral %s, found a value of type: %s, with value: %s", name, what, bson.TypeName(v.Type), show(v))
		}
		if n < 0 {
			return 0, 0, mongoerr.New(40097, "%s requires a nonnegative %s, found: %d", name, what, n)
		}
		if i == 0 {
			from = n
		} else {
			to = min(size, n)
		}
	}
	return from, to, nil
}

// trimNode is $trim, $ltrim and $rtrim.
type trimNode struct {
	name        string
	input       node
	chars       node // nil: white space
	left, right bool
}

// trimmedByDefault is what $trim takes for white space
// (https://www.mongodb.com/docs/manual/reference/operator/aggregation/trim/).
const trimmedByDefault = "\x00 \t\n\v\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"

func (n *trimNode) eval(s *Scratch) (bson.Value, error) {
	v, err := n.input.eval(s)
	if err != nil || nullish(v) {
		return bson.Null, err
	}
	if v.Type != bson.TypeString {
		return v, mongoerr.New(50699, "%s requires its input to be a string, got %s (of type %s) instead.", n.name, show(v), bson.TypeName(v.Type))
	}
	chars := trimmedByDefault
	if n.chars != nil {
		c, err := n.chars.eval(s)
		if err != nil || nullish(c) {
			return bson.Null, err
		}
		if c.Type != bson.TypeString {
			return c, mongoerr.New(50700, "%s requires 'chars' to be a string, got %s (of type %s) instead.", n.name, show(c), bson.TypeName(c.Type))
		}
		chars = textOf(c)
	}
	b := bytesOf(v)
	if n.left {
		b = bytes.TrimLeft(b, chars)
	}
	if n.right {
		b = bytes.TrimRight(b, chars)
	}
	return s.text(b)
}

func trim(left, right bool) builder {
	return func(c *compiler, name string, arg bson.Value) (node, error) {
		args, err := params(arg, mongoerr.New(50696, "%s only supports an object as an argument, found %s", name, bson.TypeName(arg.Type)), func(f string) error {
			return mongoerr.New(50694, "%s found an unknown argument: %s", name, f)
		}, "input", "chars")
		if err != nil {
			return nil, err
		}
		n := &trimNode{name: name, left: left, right: right}
		if err := c.optionals(args, map[string]*node{"input": &n.input, "chars": &n.chars}); err != nil {
			return nil, err
		}
		if n.input == nil {
			return nil, mongoerr.New(50695, "%s requires an 'input' field", name)
		}
		return n, nil
	}
}

// replaceNode is $replaceOne and $replaceAll.
type replaceNode struct {
	name                     string
	input, find, replacement node
	times                    int
}

func (n *replaceNode) eval(s *Scratch) (bson.Value, error) {
	var args [3]bson.Value
	null := false
	for i, of := range []node{n.input, n.find, n.replacement} {
		v, err := of.eval(s)
		if err != nil {
			return v, err
		}
		if !nullish(v) && v.Type != bson.TypeString {
			return v, mongoerr.New(mongoerr.Code([]int{51746, 51745, 51744}[i]), "%s requires that '%s' be a string, found: %s", n.name, replaceParams[i], show(v))
		}
		null = null || nullish(v)
		args[i] = v
	}
	if null {
		return bson.Null, nil
	}
	input, find, with := bytesOf(args[0]), bytesOf(args[1]), bytesOf(args[2])
	hits := bytes.Count(input, find)
	if n.times > 0 {
		hits = min(hits, n.times)
	}
	if len(input)+hits*len(with) > maxScratch {
		_, err := s.grab(maxScratch + 1)
		return bson.Value{}, err
	}
	return s.text(bytes.Replace(input, find, with, hits))
}

var replaceParams = [...]string{"input", "find", "replacement"}

func replace(times int) builder {
	return func(c *compiler, name string, arg bson.Value) (node, error) {
		args, err := params(arg, mongoerr.New(51751, "%s requires an object as an argument, found: %s", name, bson.TypeName(arg.Type)), func(f string) error {
			return mongoerr.New(51750, "%s found an unknown argument: %s", name, f)
		}, replaceParams[:]...)
		if err != nil {
			return nil, err
		}
		n := &replaceNode{name: name, times: times}
		into := map[string]*node{"input": &n.input, "find": &n.find, "replacement": &n.replacement}
		if err := c.optionals(args, into); err != nil {
			return nil, err
		}
		for i, p := range replaceParams {
			if *into[p] == nil {
				return nil, mongoerr.New(mongoerr.Code([]int{51749, 51748, 51747}[i]), "%s requires '%s' to be specified", name, p)
			}
		}
		return n, nil
	}
}
