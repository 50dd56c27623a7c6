package bson

// Each type class has a lead byte, with which the keys of its values begin; numbers and booleans use a few bytes from theirs on.
// The bytes are part of the format on disk: docs/decisions/0002-key-encoding.md. Zero is no lead byte, since it
// ends keys of documents and arrays.
const (
	leadMinKey        = 0x04
	leadMissing       = 0x08
	leadNull          = 0x0c
	leadNumber        = 0x10
	leadString        = 0x30
	leadDocument      = 0x34
	leadArray         = 0x38
	leadBinary        = 0x3c
	leadObjectID      = 0x40
	leadBoolean       = 0x44
	leadDateTime      = 0x48
	leadTimestamp     = 0x4c
	leadRegex         = 0x50
	leadDBPointer     = 0x54
	leadCode          = 0x58
	leadCodeWithScope = 0x5c
	leadMaxKey        = 0xf0
	leadUnknown       = 0xf4
)

// classes maps a type byte to its class.
var classes = func() (c [256]uint8) {
	for t := range c {
		c[t] = leadUnknown
	}
	for t, class := range map[Type]uint8{
		TypeMinKey: leadMinKey, 0: leadMissing,
		TypeNull: leadNull, TypeUndefined: leadNull,
		TypeDouble: leadNumber, TypeInt32: leadNumber, TypeInt64: leadNumber, TypeDecimal128: leadNumber,
		TypeString: leadString, TypeSymbol: leadString,
		TypeDocument: leadDocument, TypeArray: leadArray, TypeBinary: leadBinary, TypeObjectID: leadObjectID,
		TypeBoolean: leadBoolean, TypeDateTime: leadDateTime, TypeTimestamp: leadTimestamp, TypeRegex: leadRegex,
		TypeDBPointer: leadDBPointer, TypeJavaScript: leadCode, TypeCodeWithScope: leadCodeWithScope, TypeMaxKey: leadMaxKey,
	} {
		c[t] = class
	}
	return c
}()

// Class returns the rank of a type among the classes of the comparison order: two types of one class compare by value.
// Query comparisons ($lt and the like) match only within a class ("type bracketing"). Type 0, a missing value, has a
// class of its own between MinKey and null; bytes that are no type of BSON rank last.
func Class(t Type) int { return int(classes[t]) }

// ClassKeys returns the range of the first byte of all keys that AppendKey makes of values of t's class, low included and
// high excluded: as one-byte keys they bound the class in an index. With desc they bound the inverted keys.
func ClassKeys(t Type, desc bool) (low, high byte) {
	low = classes[t]
	switch low {
	case leadNumber:
		high = low + numberLeads
	case leadBoolean:
		high = low + 2
	default:
		high = low + 1
	}
	if desc {
		return ^(high - 1), ^(low - 1)
	}
	return low, high
}
