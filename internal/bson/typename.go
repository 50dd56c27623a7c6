package bson

// TypeName returns the name that MongoDB's $type and error messages use for a type
// (https://www.mongodb.com/docs/manual/reference/bson-types/), "missing" for 0.
func TypeName(t Type) string {
	switch t {
	case 0:
		return "missing"
	case TypeDouble:
		return "double"
	case TypeString:
		return "string"
	case TypeDocument:
		return "object"
	case TypeArray:
		return "array"
	case TypeBinary:
		return "binData"
	case TypeUndefined:
		return "undefined"
	case TypeObjectID:
		return "objectId"
	case TypeBoolean:
		return "bool"
	case TypeDateTime:
		return "date"
	case TypeNull:
		return "null"
	case TypeRegex:
		return "regex"
	case TypeDBPointer:
		return "dbPointer"
	case TypeJavaScript:
		return "javascript"
	case TypeSymbol:
		return "symbol"
	case TypeCodeWithScope:
		return "javascriptWithScope"
	case TypeInt32:
		return "int"
	case TypeTimestamp:
		return "timestamp"
	case TypeInt64:
		return "long"
	case TypeDecimal128:
		return "decimal"
	case TypeMinKey:
		return "minKey"
	case TypeMaxKey:
		return "maxKey"
	}
	return "unknown"
}
