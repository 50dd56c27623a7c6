package command

import (
	"maps"
	"strings"

	"oxbow/internal/auth"
	"oxbow/internal/bson"
)

// need says what a command asks of its user. A command without an entry in needs asks for what only root may.
type need struct {
	anyone  bool         // also one who has not logged in
	actions auth.Actions // on the command's database, or on the deployment
	// more adds what depends on the command's content.
	more func(req *Request, add func(database string, actions auth.Actions))
}

var (
	anyone   = need{anyone: true}
	loggedIn = need{}
)

// needsByCommand has an entry for every command of the table, and for some that only servers have. What each asks for is what MongoDB's manual says of it
// (https://www.mongodb.com/docs/v7.0/reference/privilege-actions/).
func needsByCommand() map[string]need {
	needs := maps.Clone(plainNeeds)
	needs["explain"] = need{more: needsOfExplain(needs)}
	return needs
}

var plainNeeds = map[string]need{
	"hello": anyone, "isMaster": anyone, "ping": anyone, "buildInfo": anyone, "isdbgrid": anyone, "whatsmyuri": anyone, "connectionStatus": anyone,
	"listCommands": anyone, "saslStart": anyone, "saslContinue": anyone, "authenticate": anyone, "logout": anyone, "features": anyone,
	"endSessions": anyone,

	"startSession": loggedIn, "refreshSessions": loggedIn, "killSessions": loggedIn, "getDefaultRWConcern": loggedIn,
	"commitTransaction": loggedIn, "abortTransaction": loggedIn,
	"getMore":     loggedIn, // a cursor belongs to the user who opened it
	"killCursors": loggedIn,

	"killAllSessions":          {actions: auth.KillAnySession},
	"killAllSessionsByPattern": {actions: auth.KillAnySession},
	"currentOp":                {more: needsOfCurrentOp},
	"killOp":                   loggedIn, // one's own; those of others it looks at itself
	"hostInfo":                 {actions: auth.HostInfo},
	"getLog":                   {actions: auth.GetLog},
	"getCmdLineOpts":           {actions: auth.GetParameter},
	"getParameter":             {actions: auth.GetParameter},
	"serverStatus":             {actions: auth.ServerStatus},
	"top":                      {actions: auth.Top},

	// The table does not have these, and servers behind may: they are part of MongoDB's clusterMonitor, with which deployments are looked at.
	"listShards": {actions: auth.ServerStatus}, "getShardMap": {actions: auth.ServerStatus}, "connPoolStats": {actions: auth.ServerStatus},
	"replSetGetStatus": {actions: auth.ServerStatus}, "replSetGetConfig": {actions: auth.ServerStatus},

	"listDatabases": loggedIn, // shows what its user may see

	"find":             {actions: auth.Find},
	"count":            {actions: auth.Find},
	"distinct":         {actions: auth.Find},
	"aggregate":        {more: needsOfAggregate},
	"insert":           {actions: auth.Insert},
	"update":           {actions: auth.Update, more: needsOfUpdate},
	"delete":           {actions: auth.Remove},
	"findAndModify":    {more: needsOfFindAndModify},
	"create":           {actions: auth.CreateCollection},
	"drop":             {actions: auth.DropCollection},
	"dropDatabase":     {actions: auth.DropDatabase},
	"createIndexes":    {actions: auth.CreateIndex},
	"dropIndexes":      {actions: auth.DropIndex},
	"listIndexes":      {actions: auth.ListIndexes},
	"listCollections":  {actions: auth.ListCollections},
	"collStats":        {actions: auth.CollStats},
	"dbStats":          {actions: auth.DBStats},
	"validate":         {actions: auth.Validate},
	"renameCollection": {more: needsOfRename},

	"createUser":               {actions: auth.ChangeUser},
	"updateUser":               {actions: auth.ChangeUser},
	"dropUser":                 {actions: auth.ChangeUser},
	"dropAllUsersFromDatabase": {actions: auth.ChangeUser},
	"grantRolesToUser":         {actions: auth.ChangeUser},
	"revokeRolesFromUser":      {actions: auth.ChangeUser},
	"usersInfo":                {more: needsOfUsersInfo},
	"rolesInfo":                loggedIn,

	"listPartitions":   {actions: auth.Partitions},
	"upkeepHistory":    {actions: auth.Partitions},
	"createPartitions": {actions: auth.Upkeep},
	"hidePartition":    {actions: auth.Upkeep},
	"undoPartition":    {actions: auth.Upkeep},
	"dropPartition":    {actions: auth.Upkeep},
	"confirmRetention": {actions: auth.Upkeep},
	"listJobs":         {actions: auth.Partitions},
	"jobHistory":       {actions: auth.Partitions},
	"orderJob":         {actions: auth.Upkeep},
}

func needsOfRename(req *Request, add func(string, auth.Actions)) {
	source, _ := req.Argument.StringValueOK()
	to, _ := bson.Get(req.Body, "to")
	target, _ := to.StringValueOK()
	from, into := databaseOf(source), databaseOf(target)
	if from == into {
		add(from, auth.RenameCollection)
	} else {
		add(from, auth.Find|auth.DropCollection)
		add(into, auth.Insert|auth.CreateIndex)
	}
	if truthy(req.Body, "dropTarget") {
		add(into, auth.DropCollection)
	}
}

func needsOfUpdate(req *Request, add func(string, auth.Actions)) {
	req.eachStatement("updates", func(statement bson.Document) {
		if truthy(statement, "upsert") {
			add(req.Database, auth.Insert)
		}
	})
}

func needsOfFindAndModify(req *Request, add func(string, auth.Actions)) {
	add(req.Database, auth.Find)
	if truthy(req.Body, "remove") {
		add(req.Database, auth.Remove)
	} else {
		add(req.Database, auth.Update)
	}
	if truthy(req.Body, "upsert") {
		add(req.Database, auth.Insert)
	}
}

func needsOfCurrentOp(req *Request, add func(string, auth.Actions)) {
	if !truthy(req.Body, "$ownOps") {
		add("", auth.InProgress)
	}
}

// needsOfUsersInfo lets a user look at itself.
func needsOfUsersInfo(req *Request, add func(string, auth.Actions)) {
	asked, err := usersAsked(req)
	if err == nil && len(asked.names) == 1 && asked.names[0] == req.Conn.login.name {
		return
	}
	add(req.Database, auth.ViewUser)
}

// needsOfExplain asks for what the explained command does.
func needsOfExplain(needs map[string]need) func(*Request, func(string, auth.Actions)) {
	return func(req *Request, add func(string, auth.Actions)) {
		inner, ok := req.Argument.DocumentOK()
		if !ok {
			return // an error that the command itself will name
		}
		name, argument, _ := bson.First(inner)
		if name == "findandmodify" {
			name = "findAndModify"
		}
		n, known := needs[name]
		if !known || name == "explain" {
			add(req.Database, auth.AnyCommand)
			return
		}
		add(req.Database, n.actions)
		if n.more != nil {
			n.more(&Request{Body: inner, Name: name, Argument: argument, Database: req.Database, Conn: req.Conn}, add)
		}
	}
}

// needsOfAggregate asks for what the stages read and write.
func needsOfAggregate(req *Request, add func(string, auth.Actions)) {
	pipeline, _ := bson.Get(req.Body, "pipeline")
	if stage, argument, _ := firstStage(req.Body); !readsNoCollection[stage] {
		add(req.Database, auth.Find)
	} else if stage == "$currentOp" && truthy(argument.Data, "allUsers") || stage == "$listLocalSessions" && truthy(argument.Data, "allUsers") {
		add("", auth.InProgress)
	}
	needsOfStages(pipeline, req.Database, add)
}

// readsNoCollection are the first stages whose documents come from somewhere else than the collection.
var readsNoCollection = map[string]bool{
	"$currentOp": true, "$listLocalSessions": true, "$documents": true, "$collStats": true, "$indexStats": true,
}

// needsOfStages looks for stages at any depth, since pipelines lie within stages: one too many asks too much, which is safe.
func needsOfStages(v bson.Value, database string, add func(string, auth.Actions)) {
	if v.Type != bson.TypeDocument && v.Type != bson.TypeArray {
		return
	}
	it := bson.Elements(v.Data)
	for it.Next() {
		argument := it.Value()
		switch string(it.Key()) {
		case "$out", "$merge":
			into, _ := outputOf(argument, database)
			add(into, auth.Insert|auth.Update|auth.Remove)
		case "$lookup", "$graphLookup", "$unionWith":
			add(sideDatabase(argument, database), auth.Find)
		case "$collStats", "$indexStats":
			add(database, auth.CollStats)
		}
		needsOfStages(argument, database, add)
	}
}

// sideDatabase is the database that a stage reads from: its own, or that of from: {db, coll}.
func sideDatabase(argument bson.Value, database string) string {
	if argument.Type != bson.TypeDocument {
		return database
	}
	from, _ := bson.Get(argument.Data, "from")
	if from.Type == bson.TypeDocument {
		argument = from
	}
	if db, ok := bson.Get(argument.Data, "db"); ok {
		name, _ := db.StringValueOK()
		return name
	}
	return database
}

// databaseOf is what stands before the first dot of a namespace.
func databaseOf(namespace string) string {
	database, _, _ := strings.Cut(namespace, ".")
	return database
}
