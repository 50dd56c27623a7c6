package auth

import "strings"

// Actions is a set of what can be done to a database, or to the deployment as a whole. The names are those of MongoDB's privilege actions
// (https://www.mongodb.com/docs/v7.0/reference/privilege-actions/).
type Actions uint64

// Of a database.
const (
	Find Actions = 1 << iota
	Insert
	Update
	Remove
	ListCollections
	ListIndexes
	CollStats
	DBStats
	KillCursors
	CreateCollection
	DropCollection
	CreateIndex
	DropIndex
	DropDatabase
	RenameCollection
	Validate
	CollMod
	ViewUser
	ChangeUser // createUser, dropUser, grantRole, changeAnyPassword and the like in one

	// Of the deployment.
	ListDatabases
	ServerStatus
	InProgress
	KillOperation
	KillAnySession
	KillAnyCursor
	HostInfo
	GetLog
	GetParameter
	SetParameter
	Top
	Partitions // to look at partitions, also by their own names, and at jobs
	Upkeep     // to make, drop and bring back partitions, and to give jobs orders
	AnyCommand // commands that the gateway doesn't know

	afterLast
)

var actionNames = [...]string{
	"find", "insert", "update", "remove", "listCollections", "listIndexes", "collStats", "dbStats", "killCursors", "createCollection",
	"dropCollection", "createIndex", "dropIndex", "dropDatabase", "renameCollectionSameDB", "validate", "collMod", "viewUser", "changeUser",
	"listDatabases", "serverStatus", "inprog", "killop", "killAnySession", "killAnyCursor", "hostInfo", "getLog", "getParameter", "setParameter",
	"top", "partitions", "upkeep", "anyAction",
}

const (
	everything = afterLast - 1
	ofDatabase = ListDatabases - 1
)

// String lists the actions by name.
func (a Actions) String() string { return strings.Join(a.Names(), ", ") }

// Names lists the actions by name, as usersInfo shows privileges.
func (a Actions) Names() []string {
	var names []string
	for i, name := range actionNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}
