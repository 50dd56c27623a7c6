package mongoerr

import "fmt"

// Code is a numeric error code of MongoDB.
type Code int32

// The codes in use. Names and numbers are MongoDB's (src/mongo/base/error_codes.yml names them; the manual's page on
// error codes lists them).
const (
	InternalError                Code = 1
	BadValue                     Code = 2
	NoSuchKey                    Code = 4
	HostUnreachable              Code = 6
	HostNotFound                 Code = 7
	UnknownError                 Code = 8
	FailedToParse                Code = 9
	UserNotFound                 Code = 11
	UnsupportedFormat            Code = 12
	Unauthorized                 Code = 13
	TypeMismatch                 Code = 14
	Overflow                     Code = 15
	InvalidLength                Code = 16
	AuthenticationFailed         Code = 18
	IllegalOperation             Code = 20
	InvalidBSON                  Code = 22
	LockTimeout                  Code = 24
	NamespaceNotFound            Code = 26
	IndexNotFound                Code = 27
	PathNotViable                Code = 28
	ConflictingUpdateOperators   Code = 40
	CursorNotFound               Code = 43
	NamespaceExists              Code = 48
	MaxTimeMSExpired             Code = 50
	DollarPrefixedFieldName      Code = 52
	InvalidIDField               Code = 53
	NotSingleValueField          Code = 54
	InvalidDBRef                 Code = 55
	EmptyFieldName               Code = 56
	DottedFieldName              Code = 57
	CommandNotFound              Code = 59
	ShardKeyNotFound             Code = 61
	WriteConcernFailed           Code = 64
	ImmutableField               Code = 66
	CannotCreateIndex            Code = 67
	IndexAlreadyExists           Code = 68
	InvalidOptions               Code = 72
	InvalidNamespace             Code = 73
	CannotCreateCollection       Code = 74
	IndexOptionsConflict         Code = 85
	IndexKeySpecsConflict        Code = 86
	NetworkTimeout               Code = 89
	ShutdownInProgress           Code = 91
	OperationFailed              Code = 96
	WriteConflict                Code = 112
	CommandNotSupported          Code = 115
	NotAReplicaSet               Code = 123
	CappedPositionLost           Code = 136
	ExceededMemoryLimit          Code = 146
	CommandNotSupportedOnView    Code = 166
	InvalidPipelineOperator      Code = 168
	CannotIndexParallelArrays    Code = 171
	QueryPlanKilled              Code = 175
	InvalidIndexSpecOption       Code = 197
	NoSuchSession                Code = 206
	InvalidUUID                  Code = 207
	IncompleteTransactionHistory Code = 217
	TransactionTooOld            Code = 225
	CursorKilled                 Code = 237
	NoSuchTransaction            Code = 251
	OperationNotSupportedInTxn   Code = 263
	QueryExceededMemoryNoDiskUse Code = 292
	ObjectIsBusy                 Code = 314
	APIVersionError              Code = 322
	APIStrictError               Code = 323
	UnsupportedOpQueryCommand    Code = 352
	NotWritablePrimary           Code = 10107
	BSONObjectTooLarge           Code = 10334
	DuplicateKey                 Code = 11000
	InterruptedAtShutdown        Code = 11600
	Interrupted                  Code = 11601
	InterruptedDueToReplState    Code = 11602
	CursorInUse                  Code = 12051
	StaleConfig                  Code = 13388
	OutOfDiskSpace               Code = 14031
	GroupUnknownOperator         Code = 15952
	AmbiguousIndexField          Code = 16746
	ExpressionFieldPathInvalid   Code = 16872
	PipelineUnknownStage         Code = 40324
	IDLDuplicateField            Code = 40413
	Location51024                Code = 51024
	IDLMissingField              Code = 40414
	IDLUnknownField              Code = 40415
)

// names gives each code's codeName; a code without an entry is reported as Location<number>, as MongoDB does.
var names = map[Code]string{
	InternalError:                "InternalError",
	BadValue:                     "BadValue",
	NoSuchKey:                    "NoSuchKey",
	HostUnreachable:              "HostUnreachable",
	HostNotFound:                 "HostNotFound",
	UnknownError:                 "UnknownError",
	FailedToParse:                "FailedToParse",
	UserNotFound:                 "UserNotFound",
	UnsupportedFormat:            "UnsupportedFormat",
	Unauthorized:                 "Unauthorized",
	TypeMismatch:                 "TypeMismatch",
	Overflow:                     "Overflow",
	InvalidLength:                "InvalidLength",
	AuthenticationFailed:         "AuthenticationFailed",
	IllegalOperation:             "IllegalOperation",
	InvalidBSON:                  "InvalidBSON",
	LockTimeout:                  "LockTimeout",
	NamespaceNotFound:            "NamespaceNotFound",
	IndexNotFound:                "IndexNotFound",
	PathNotViable:                "PathNotViable",
	ConflictingUpdateOperators:   "ConflictingUpdateOperators",
	CursorNotFound:               "CursorNotFound",
	NamespaceExists:              "NamespaceExists",
	MaxTimeMSExpired:             "MaxTimeMSExpired",
	DollarPrefixedFieldName:      "DollarPrefixedFieldName",
	InvalidIDField:               "InvalidIdField",
	NotSingleValueField:          "NotSingleValueField",
	InvalidDBRef:                 "InvalidDBRef",
	EmptyFieldName:               "EmptyFieldName",
	DottedFieldName:              "DottedFieldName",
	CommandNotFound:              "CommandNotFound",
	ShardKeyNotFound:             "ShardKeyNotFound",
	WriteConcernFailed:           "WriteConcernFailed",
	ImmutableField:               "ImmutableField",
	CannotCreateIndex:            "CannotCreateIndex",
	IndexAlreadyExists:           "IndexAlreadyExists",
	InvalidOptions:               "InvalidOptions",
	InvalidNamespace:             "InvalidNamespace",
	CannotCreateCollection:       "CannotCreateCollection",
	IndexOptionsConflict:         "IndexOptionsConflict",
	IndexKeySpecsConflict:        "IndexKeySpecsConflict",
	NetworkTimeout:               "NetworkTimeout",
	ShutdownInProgress:           "ShutdownInProgress",
	OperationFailed:              "OperationFailed",
	WriteConflict:                "WriteConflict",
	CommandNotSupported:          "CommandNotSupported",
	NotAReplicaSet:               "NotAReplicaSet",
	CappedPositionLost:           "CappedPositionLost",
	ExceededMemoryLimit:          "ExceededMemoryLimit",
	CommandNotSupportedOnView:    "CommandNotSupportedOnView",
	InvalidPipelineOperator:      "InvalidPipelineOperator",
	CannotIndexParallelArrays:    "CannotIndexParallelArrays",
	QueryPlanKilled:              "QueryPlanKilled",
	InvalidIndexSpecOption:       "InvalidIndexSpecOption",
	NoSuchSession:                "NoSuchSession",
	InvalidUUID:                  "InvalidUUID",
	IncompleteTransactionHistory: "IncompleteTransactionHistory",
	TransactionTooOld:            "TransactionTooOld",
	CursorKilled:                 "CursorKilled",
	NoSuchTransaction:            "NoSuchTransaction",
	OperationNotSupportedInTxn:   "OperationNotSupportedInTransaction",
	QueryExceededMemoryNoDiskUse: "QueryExceededMemoryLimitNoDiskUseAllowed",
	ObjectIsBusy:                 "ObjectIsBusy",
	APIVersionError:              "APIVersionError",
	APIStrictError:               "APIStrictError",
	UnsupportedOpQueryCommand:    "UnsupportedOpQueryCommand",
	NotWritablePrimary:           "NotWritablePrimary",
	BSONObjectTooLarge:           "BSONObjectTooLarge",
	DuplicateKey:                 "DuplicateKey",
	InterruptedAtShutdown:        "InterruptedAtShutdown",
	Interrupted:                  "Interrupted",
	InterruptedDueToReplState:    "InterruptedDueToReplStateChange",
	CursorInUse:                  "CursorInUse",
	StaleConfig:                  "StaleConfig",
	OutOfDiskSpace:               "OutOfDiskSpace",
}

// String returns the code's name as clients see it in codeName.
func (c Code) String() string {
	if n, ok := names[c]; ok {
		return n
	}
	return fmt.Sprintf("Location%d", int32(c))
}
