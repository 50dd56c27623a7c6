package bson

import "go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

// Document is a raw BSON document, its int32 length and final zero byte included.
type Document = bsoncore.Document

// Array is a raw BSON array, laid out as a document with the keys "0", "1", ….
type Array = bsoncore.Array

// Value is one BSON value: its type and the bytes that follow the element's key.
type Value = bsoncore.Value

// Type is the type byte of an element (https://bsonspec.org/spec.html).
type Type = bsoncore.Type

// The types of BSON, the deprecated ones included: old clients still send them.
const (
	TypeDouble        = bsoncore.TypeDouble
	TypeString        = bsoncore.TypeString
	TypeDocument      = bsoncore.TypeEmbeddedDocument
	TypeArray         = bsoncore.TypeArray
	TypeBinary        = bsoncore.TypeBinary
	TypeUndefined     = bsoncore.TypeUndefined
	TypeObjectID      = bsoncore.TypeObjectID
	TypeBoolean       = bsoncore.TypeBoolean
	TypeDateTime      = bsoncore.TypeDateTime
	TypeNull          = bsoncore.TypeNull
	TypeRegex         = bsoncore.TypeRegex
	TypeDBPointer     = bsoncore.TypeDBPointer
	TypeJavaScript    = bsoncore.TypeJavaScript
	TypeSymbol        = bsoncore.TypeSymbol
	TypeCodeWithScope = bsoncore.TypeCodeWithScope
	TypeInt32         = bsoncore.TypeInt32
	TypeTimestamp     = bsoncore.TypeTimestamp
	TypeInt64         = bsoncore.TypeInt64
	TypeDecimal128    = bsoncore.TypeDecimal128
	TypeMinKey        = bsoncore.TypeMinKey
	TypeMaxKey        = bsoncore.TypeMaxKey
)

// Null is the BSON null value.
var Null = Value{Type: TypeNull}

// IsNumber reports whether t is one of the four numeric types, which compare with one another by value.
func IsNumber(t Type) bool {
	return t == TypeDouble || t == TypeInt32 || t == TypeInt64 || t == TypeDecimal128
}
