package command

import (
	"bytes"
	"math"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
	"oxbow/internal/cursor"
	"oxbow/internal/mongoerr"
	"oxbow/internal/statement"
)

// generic are the arguments that any command may carry (MongoDB 7.0's list). Those of a cluster's inside are taken and
// ignored, as a router outside of any cluster has no use for them.
var generic = map[string]bool{
	"$db": true, "lsid": true, "txnNumber": true, "autocommit": true, "startTransaction": true,
	"apiVersion": true, "apiStrict": true, "apiDeprecationErrors": true,
	"$readPreference": true, "$clusterTime": true, "readConcern": true, "writeConcern": true,
	"maxTimeMS": true, "comment": true, "$client": true, "$audit": true, "$queryOptions": true,
	"$configServerState": true, "$configTime": true, "$topologyTime": true, "$oplogQueryData": true, "$replData": true,
	"databaseVersion": true, "shardVersion": true, "clientOperationKey": true, "coordinator": true,
	"help": true, "maxTimeMSOpOnly": true, "mayBypassWriteBlocking": true, "allowImplicitCollectionCreation": true,
	"stmtId": true, "txnRetryCounter": true, "operationSessionInfo": true, "expectPrefix": true,
}

// CheckFields returns error 40415 for the first field of the body that is neither the command's name nor a generic argument nor
// among known.
func CheckFields(req *Request, known []string) error {
	it := bson.Elements(req.Body)
	it.Next()
	for it.Next() {
		key := it.Key()
		if generic[string(key)] || contains(known, key) {
			continue
		}
		return mongoerr.New(mongoerr.IDLUnknownField, "BSON field '%s.%s' is an unknown field.", req.Name, key)
	}
	return nil
}

func contains(known []string, key []byte) bool {
	for _, k := range known {
		if k == string(key) {
			return true
		}
	}
	return false
}

// parseArguments reads the generic arguments of the request's body. It refuses a body that has a field twice: who may run the command is decided
// apart from its handler, and both must have read the same.
func parseArguments(req *Request) error {
	p := argumentParser{req: req}
	it := bson.Elements(req.Body)
	it.Next()
	p.seen.add(it.Key())
	for it.Next() {
		if !p.seen.add(it.Key()) {
			return mongoerr.New(mongoerr.IDLDuplicateField, "BSON field '%s.%s' is a duplicate field", req.Name, it.Key())
		}
		if err := p.field(it.Key(), it.Value()); err != nil {
			return err
		}
	}
	return p.finish()
}

// fieldsSeen are the names of a command's fields. Those of usual commands cost no allocation, those of a command with very many no search.
type fieldsSeen struct {
	few  [16][]byte
	n    int
	more map[string]bool
}

// add notes a name and reports whether it is new.
func (s *fieldsSeen) add(name []byte) bool {
	for _, seen := range s.few[:s.n] {
		if bytes.Equal(seen, name) {
			return false
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = name
		s.n++
		return true
	}
	if s.more[string(name)] {
		return false
	}
	if s.more == nil {
		s.more = make(map[string]bool)
	}
	s.more[string(name)] = true
	return true
}

// onExternal are the commands that may run on the database of users who show a certificate. It holds nothing else.
var onExternal = map[string]bool{
	"authenticate": true, "saslStart": true, "saslContinue": true, "logout": true, "connectionStatus": true, "ping": true,
	"createUser": true, "updateUser": true, "dropUser": true, "dropAllUsersFromDatabase": true, "grantRolesToUser": true,
	"revokeRolesFromUser": true, "usersInfo": true, "rolesInfo": true,
}

type argumentParser struct {
	req                          *Request
	seen                         fieldsSeen
	hasDatabase                  bool
	hasAutocommit, hasStart      bool
	strictOrDeprecationRequested bool
}

func (p *argumentParser) field(key []byte, v bson.Value) error {
	a := &p.req.Arguments
	var err error
	switch string(key) {
	case "$db":
		p.hasDatabase = true
		err = p.database(v)
	case "lsid":
		err = p.session(v)
	case "txnNumber":
		a.HasTxnNumber = true
		if v.Type != bson.TypeInt64 {
			return wrongType("txnNumber", v.Type, "long")
		}
		a.TxnNumber = v.Int64()
	case "autocommit":
		p.hasAutocommit = true
		err = mustBe(key, v, bson.TypeBoolean)
	case "startTransaction":
		p.hasStart = true
		err = mustBe(key, v, bson.TypeBoolean)
	case "apiVersion":
		if err = mustBe(key, v, bson.TypeString); err == nil {
			a.APIVersion = v.StringValue()
		}
	case "apiStrict":
		if err = mustBe(key, v, bson.TypeBoolean); err == nil {
			a.APIStrict = v.Boolean()
			p.strictOrDeprecationRequested = p.strictOrDeprecationRequested || v.Boolean()
		}
	case "apiDeprecationErrors":
		if err = mustBe(key, v, bson.TypeBoolean); err == nil {
			p.strictOrDeprecationRequested = p.strictOrDeprecationRequested || v.Boolean()
		}
	case "maxTimeMS":
		a.MaxTime, err = milliseconds(v)
	case "readConcern":
		a.ReadConcern, err = parseReadConcern(v)
	case "writeConcern":
		a.WriteConcern, err = writeConcern(v)
	case "$readPreference":
		a.ReadPreference, err = readPreference(v)
	case "$clusterTime":
		a.ClusterTime = v.Data
		err = mustBe(key, v, bson.TypeDocument)
	case "comment":
		a.Comment = v
	}
	return err
}

// finish checks what several arguments mean together.
func (p *argumentParser) finish() error {
	a := &p.req.Arguments
	if !p.hasDatabase {
		return mongoerr.New(40571, "OP_MSG requests require a $db argument")
	}
	if a.HasTxnNumber {
		if a.Session == nil {
			return mongoerr.New(mongoerr.InvalidOptions, "Transaction number requires a session ID to also be specified")
		}
		if a.TxnNumber < 0 {
			return mongoerr.New(mongoerr.InvalidOptions, "Transaction number cannot be negative")
		}
	}
	if p.hasAutocommit || p.hasStart {
		if err := transactionArguments(p.req.Body, a); err != nil {
			return err
		}
	}
	if a.APIVersion == "" && p.strictOrDeprecationRequested {
		return mongoerr.New(4886600, "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion")
	}
	if a.APIVersion != "" && a.APIVersion != "1" {
		return mongoerr.New(mongoerr.APIVersionError, `API version must be "1"`)
	}
	return nil
}

func (p *argumentParser) database(v bson.Value) error {
	if v.Type != bson.TypeString {
		return wrongType("$db", v.Type, "string")
	}
	name := same(&p.req.names().database, v)
	if err := statement.CheckDatabase(name); err != nil && !(name == auth.External && onExternal[p.req.Name]) {
		return err
	}
	p.req.Database = name
	return nil
}

func (p *argumentParser) session(v bson.Value) error {
	id, err := parseSession(v, "lsid")
	if err != nil {
		return err
	}
	if id, err = ownSession(id, p.req.Conn); err != nil {
		return err
	}
	p.req.LSID = v.Data
	p.req.session = id
	p.req.Session = &p.req.session
	return nil
}

// ownSession gives a session its user, and refuses one that names another: only a router's own user may.
func ownSession(id cursor.SessionID, c *Conn) (cursor.SessionID, error) {
	if id.User != "" && id.User != c.User && c.login.in {
		return id, mongoerr.New(mongoerr.Unauthorized, "Unauthorized to set user digest in LogicalSessionId")
	}
	if id.User == "" {
		id.User = c.User
	}
	return id, nil
}

// parseSession reads {id: UUID, uid: BinData}; the latter names the session of another user. field is for the error.
func parseSession(v bson.Value, field string) (cursor.SessionID, error) {
	var id cursor.SessionID
	doc, ok := v.DocumentOK()
	if !ok {
		return id, wrongType(field, v.Type, "object")
	}
	found := false
	it := bson.Elements(doc)
	for it.Next() {
		v := it.Value()
		switch string(it.Key()) {
		case "id":
			subtype, data, ok := v.BinaryOK()
			if !ok {
				return id, wrongType(field+".id", v.Type, "binData")
			}
			if subtype != 4 || len(data) != len(id.UUID) {
				return id, mongoerr.New(mongoerr.TypeMismatch,
					"BSON field '%s.id' is the wrong binData type, expected type 'UUID' of 16 bytes", field)
			}
			copy(id.UUID[:], data)
			found = true
		case "uid":
			_, data, ok := v.BinaryOK()
			if !ok || len(data) != 32 {
				return id, wrongType(field+".uid", v.Type, "binData")
			}
			id.User = string(data)
		default:
			return id, mongoerr.New(mongoerr.IDLUnknownField, "BSON field '%s.%s' is an unknown field.", field, it.Key())
		}
	}
	if !found {
		return id, missing(field + ".id")
	}
	return id, nil
}

// milliseconds reads maxTimeMS: a whole number from 0 (none) to 2^31-1, of any numeric type.
func milliseconds(v bson.Value) (time.Duration, error) {
	const field = "maxTimeMS"
	if !bson.IsNumber(v.Type) {
		return 0, mongoerr.New(mongoerr.BadValue, "%s must be a number", field)
	}
	n, whole := wholeNumber(v)
	if !whole {
		return 0, mongoerr.New(mongoerr.BadValue, "%s has non-integral value", field)
	}
	if n < 0 || n > math.MaxInt32 {
		return 0, mongoerr.New(mongoerr.BadValue, "%d value for %s is out of range [0, %d]", n, field, math.MaxInt32)
	}
	return time.Duration(n) * time.Millisecond, nil
}

// wholeNumber returns the value of a number without a fraction that fits in 64 bits.
func wholeNumber(v bson.Value) (int64, bool) {
	switch v.Type {
	case bson.TypeInt32:
		return int64(v.Int32()), true
	case bson.TypeInt64:
		return v.Int64(), true
	case bson.TypeDouble:
		f := v.Double()
		if f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
			return 0, false
		}
		return int64(f), true
	case bson.TypeDecimal128:
		big, exponent, err := driver.NewDecimal128(v.Decimal128()).BigInt()
		if err != nil || exponent != 0 || !big.IsInt64() {
			return 0, false
		}
		return big.Int64(), true
	}
	return 0, false
}

func writeConcern(v bson.Value) (bson.Document, error) {
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, wrongType("writeConcern", v.Type, "object")
	}
	it := bson.Elements(doc)
	for it.Next() {
		v := it.Value()
		switch key := string(it.Key()); key {
		case "w":
			if !bson.IsNumber(v.Type) && v.Type != bson.TypeString && v.Type != bson.TypeDocument {
				return nil, mongoerr.New(mongoerr.FailedToParse, "w has to be a number, string, or object; found: %s", bson.TypeName(v.Type))
			}
			if n, ok := wholeNumber(v); ok && (n < 0 || n > 50) {
				return nil, mongoerr.New(mongoerr.FailedToParse, "w has to be a non-negative number and not greater than 50; found: %d", n)
			}
		case "j", "fsync":
			if v.Type != bson.TypeBoolean && !bson.IsNumber(v.Type) {
				return nil, mongoerr.New(mongoerr.FailedToParse, "%s must be numeric or a boolean value", key)
			}
		case "wtimeout", "wtimeoutMS", "wElectionId", "wOpTime", "getLastError", "provenance":
		default:
			return nil, mongoerr.New(mongoerr.IDLUnknownField, "BSON field 'writeConcern.%s' is an unknown field.", key)
		}
	}
	return doc, nil
}

func readPreference(v bson.Value) (bson.Document, error) {
	doc, ok := v.DocumentOK()
	if !ok {
		return nil, wrongType("$readPreference", v.Type, "object")
	}
	mode, ok := bson.Get(doc, "mode")
	if !ok {
		return nil, missing("$readPreference.mode")
	}
	name, ok := mode.StringValueOK()
	if !ok {
		return nil, wrongType("$readPreference.mode", mode.Type, "string")
	}
	switch name {
	case "primary", "primaryPreferred", "secondary", "secondaryPreferred", "nearest":
		return doc, checkStaleness(doc, name)
	}
	return nil, mongoerr.New(mongoerr.FailedToParse, "Could not parse $readPreference mode '%s'. Only the modes 'primary', "+
		"'primaryPreferred', 'secondary', 'secondaryPreferred', and 'nearest' are supported.", name)
}

// leastStaleness is the smallest maxStalenessSeconds
// (https://www.mongodb.com/docs/manual/core/read-preference-staleness/).
const leastStaleness = 90

// checkStaleness checks maxStalenessSeconds, of which 0 and -1 are none.
func checkStaleness(preference bson.Document, mode string) error {
	v, ok := bson.Get(preference, "maxStalenessSeconds")
	if !ok {
		return nil
	}
	n, whole := wholeNumber(v)
	switch {
	case !whole || n < -1:
		return mongoerr.New(mongoerr.BadValue, "maxStalenessSeconds must be a non-negative integer")
	case n <= 0:
		return nil
	case mode == "primary":
		return mongoerr.New(mongoerr.BadValue, "mode 'primary' cannot be used with maxStalenessSeconds")
	case n < leastStaleness:
		return mongoerr.New(mongoerr.MaxStalenessOutOfRange, "maxStalenessSeconds value can not be less than %d", leastStaleness)
	}
	return nil
}

func mustBe(field []byte, v bson.Value, t bson.Type) error {
	if v.Type != t {
		return wrongType(string(field), v.Type, bson.TypeName(t))
	}
	return nil
}

func wrongType(field string, got bson.Type, want string) error {
	return mongoerr.New(mongoerr.TypeMismatch, "BSON field '%s' is the wrong type '%s', expected type '%s'", field, bson.TypeName(got), want)
}

func missing(field string) error {
	return mongoerr.New(mongoerr.IDLMissingField, "BSON field '%s' is missing but a required field", field)
}
