package mongoerr

import "fmt"

// Code is a numeric error code of MongoDB.
type Code int32

// The codes in use. Names and numbers are MongoDB's (src/mongo/base/error_codes.yml names them; the manual's page on
// error codes lists them).
const (
	InternalError                 Code = 1
	BadValue                      Code = 2
	NoSuchKey                     Code = 4
	HostUnreachable               Code = 6
	HostNotFound                  Code = 7
	UnknownError                  Code = 8
	FailedToParse                 Code = 9
	UserNotFound                  Code = 11
	UnsupportedFormat             Code = 12
	Unauthorized                  Code = 13
	TypeMismatch                  Code = 14
	Overflow                      Code = 15
	InvalidLength                 Code = 16
	AuthenticationFailed          Code = 18
	IllegalOperation              Code = 20
	InvalidBSON                   Code = 22
	LockTimeout                   Code = 24
	NamespaceNotFound             Code = 26
	IndexNotFound                 Code = 27
	PathNotViable                 Code = 28
	CannotBackfillArray           Code = 34
	ConflictingUpdateOperators    Code = 40
	CursorNotFound                Code = 43
	NamespaceExists               Code = 48
	MaxTimeMSExpired              Code = 50
	DollarPrefixedFieldName       Code = 52
	InvalidIDField                Code = 53
	NotSingleValueField           Code = 54
	InvalidDBRef                  Code = 55
	EmptyFieldName                Code = 56
	DottedFieldName               Code = 57
	CommandNotFound               Code = 59
	ShardKeyNotFound              Code = 61
	WriteConcernFailed            Code = 64
	ImmutableField                Code = 66
	CannotCreateIndex             Code = 67
	IndexAlreadyExists            Code = 68
	InvalidOptions                Code = 72
	InvalidNamespace              Code = 73
	CannotCreateCollection        Code = 74
	UnknownReplWriteConcern       Code = 79
	IndexOptionsConflict          Code = 85
	IndexKeySpecsConflict         Code = 86
	NetworkTimeout                Code = 89
	ShutdownInProgress            Code = 91
	OperationFailed               Code = 96
	UnsatisfiableWriteConcern     Code = 100
	NotExactValueField            Code = 111
	WriteConflict                 Code = 112
	CommandNotSupported           Code = 115
	NotAReplicaSet                Code = 123
	CommandFailed                 Code = 125
	CappedPositionLost            Code = 136
	ExceededMemoryLimit           Code = 146
	DurationOverflow              Code = 159
	CommandNotSupportedOnView     Code = 166
	InvalidPipelineOperator       Code = 168
	CannotIndexParallelArrays     Code = 171
	QueryPlanKilled               Code = 175
	PrimarySteppedDown            Code = 189
	InvalidIndexSpecOption        Code = 197
	NoSuchSession                 Code = 206
	InvalidUUID                   Code = 207
	IncompleteTransactionHistory  Code = 217
	IllegalOpMsgFlag              Code = 223
	QueryFeatureNotAllowed        Code = 224
	TransactionTooOld             Code = 225
	CursorKilled                  Code = 237
	ConversionFailure             Code = 241
	NoSuchTransaction             Code = 251
	TooManyDocumentSequences      Code = 257
	TooManyLogicalSessions        Code = 261
	ExceededTimeLimit             Code = 262
	OperationNotSupportedInTxn    Code = 263
	ClientDisconnect              Code = 279
	QueryExceededMemoryNoDiskUse  Code = 292
	ObjectIsBusy                  Code = 314
	APIVersionError               Code = 322
	APIStrictError                Code = 323
	APIDeprecationError           Code = 324
	UnsupportedOpQueryCommand     Code = 352
	SocketException               Code = 9001
	NotWritablePrimary            Code = 10107
	BSONObjectTooLarge            Code = 10334
	DuplicateKey                  Code = 11000
	InterruptedAtShutdown         Code = 11600
	Interrupted                   Code = 11601
	InterruptedDueToReplState     Code = 11602
	CursorInUse                   Code = 12051
	TooManySortKeys               Code = 13103
	StaleConfig                   Code = 13388
	NotPrimaryNoSecondaryOk       Code = 13435
	NotPrimaryOrSecondary         Code = 13436
	DistinctTooBig                Code = 17217
	OutOfDiskSpace                Code = 14031
	GroupUnknownOperator          Code = 15952
	ProjectNotObject              Code = 15969
	SortKeyInvalid                Code = 15974
	SortDirectionInvalid          Code = 15975
	FieldPathEmptyPart            Code = 15998
	FieldPathDollar               Code = 16410
	AmbiguousIndexField           Code = 16746
	ExpressionFieldPathInvalid    Code = 16872
	UpdateResultTooLarge          Code = 17419
	UpsertTooLarge                Code = 17420
	UnsetInvalid                  Code = 31002
	UnsetEmpty                    Code = 31119
	UnsetNotString                Code = 31120
	ProjectionPrefixCollision     Code = 31249
	ProjectionPathCollision       Code = 31250
	ProjectionExclusionExpression Code = 31252
	ProjectionInclusionMixed      Code = 31253
	ProjectionExclusionMixed      Code = 31254
	ElemMatchAfterPositional      Code = 31255
	PositionalAfterElemMatch      Code = 31256
	SliceLimitNotNumber           Code = 31258
	SliceLimitNotPositive         Code = 31259
	PositionalExpression          Code = 31271
	SliceArrayForm                Code = 31272
	SliceArgument                 Code = 31273
	ElemMatchNotObject            Code = 31274
	ElemMatchNested               Code = 31275
	PositionalTwice               Code = 31276
	PositionalNotInFilter         Code = 31277
	PositionalLiteral             Code = 31308
	ProjectionExclusionLiteral    Code = 31310
	PositionalInPipeline          Code = 31324
	PositionalMidPath             Code = 31394
	AddFieldsCollision            Code = 40176
	AddFieldsEmpty                Code = 40177
	AddFieldsEmptyObject          Code = 40180
	NewRootNotObject              Code = 40228
	ReplaceRootNotObject          Code = 40229
	AddFieldsNotObject            Code = 40272
	PipelineStageFields           Code = 40323
	PipelineUnknownStage          Code = 40324
	FieldPathEmpty                Code = 40352
	FieldPathTrailingDot          Code = 40353
	IDLDuplicateField             Code = 40413
	IDLMissingField               Code = 40414
	IDLUnknownField               Code = 40415
	Location51024                 Code = 51024
	PositionalNoFilter            Code = 51050
	RegexOptionsTwice             Code = 51074
	OptionsAndRegexOptions        Code = 51075
	RegexInvalid                  Code = 51091
	RegexFlagInvalid              Code = 51108
	PositionalNoMatch             Code = 51246
	PositionalMismatch            Code = 51247
	ProjectionEmptyObject         Code = 51270
	ProjectionEmpty               Code = 51272
	SortKeyDuplicate              Code = 7472500
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
	CannotBackfillArray:          "CannotBackfillArray",
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
	UnknownReplWriteConcern:      "UnknownReplWriteConcern",
	IndexOptionsConflict:         "IndexOptionsConflict",
	IndexKeySpecsConflict:        "IndexKeySpecsConflict",
	NetworkTimeout:               "NetworkTimeout",
	ShutdownInProgress:           "ShutdownInProgress",
	OperationFailed:              "OperationFailed",
	UnsatisfiableWriteConcern:    "UnsatisfiableWriteConcern",
	NotExactValueField:           "NotExactValueField",
	WriteConflict:                "WriteConflict",
	CommandNotSupported:          "CommandNotSupported",
	NotAReplicaSet:               "NotAReplicaSet",
	CommandFailed:                "CommandFailed",
	CappedPositionLost:           "CappedPositionLost",
	ExceededMemoryLimit:          "ExceededMemoryLimit",
	DurationOverflow:             "DurationOverflow",
	CommandNotSupportedOnView:    "CommandNotSupportedOnView",
	InvalidPipelineOperator:      "InvalidPipelineOperator",
	CannotIndexParallelArrays:    "CannotIndexParallelArrays",
	QueryPlanKilled:              "QueryPlanKilled",
	PrimarySteppedDown:           "PrimarySteppedDown",
	InvalidIndexSpecOption:       "InvalidIndexSpecOption",
	NoSuchSession:                "NoSuchSession",
	InvalidUUID:                  "InvalidUUID",
	IncompleteTransactionHistory: "IncompleteTransactionHistory",
	IllegalOpMsgFlag:             "IllegalOpMsgFlag",
	QueryFeatureNotAllowed:       "QueryFeatureNotAllowed",
	TransactionTooOld:            "TransactionTooOld",
	CursorKilled:                 "CursorKilled",
	ConversionFailure:            "ConversionFailure",
	NoSuchTransaction:            "NoSuchTransaction",
	TooManyDocumentSequences:     "TooManyDocumentSequences",
	TooManyLogicalSessions:       "TooManyLogicalSessions",
	ExceededTimeLimit:            "ExceededTimeLimit",
	OperationNotSupportedInTxn:   "OperationNotSupportedInTransaction",
	ClientDisconnect:             "ClientDisconnect",
	QueryExceededMemoryNoDiskUse: "QueryExceededMemoryLimitNoDiskUseAllowed",
	ObjectIsBusy:                 "ObjectIsBusy",
	APIVersionError:              "APIVersionError",
	APIStrictError:               "APIStrictError",
	APIDeprecationError:          "APIDeprecationError",
	UnsupportedOpQueryCommand:    "UnsupportedOpQueryCommand",
	SocketException:              "SocketException",
	NotWritablePrimary:           "NotWritablePrimary",
	BSONObjectTooLarge:           "BSONObjectTooLarge",
	DuplicateKey:                 "DuplicateKey",
	InterruptedAtShutdown:        "InterruptedAtShutdown",
	Interrupted:                  "Interrupted",
	InterruptedDueToReplState:    "InterruptedDueToReplStateChange",
	CursorInUse:                  "CursorInUse",
	StaleConfig:                  "StaleConfig",
	NotPrimaryNoSecondaryOk:      "NotPrimaryNoSecondaryOk",
	NotPrimaryOrSecondary:        "NotPrimaryOrSecondary",
	OutOfDiskSpace:               "OutOfDiskSpace",
}

// String returns the code's name as clients see it in codeName.
func (c Code) String() string {
	if n, ok := names[c]; ok {
		return n
	}
	return fmt.Sprintf("Location%d", int32(c))
}
