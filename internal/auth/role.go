package auth

import (
	"maps"
	"slices"

	"oxbow/internal/mongoerr"
)

// Role is a role of a database, as a user holds it. Roles over all databases are those of "admin".
type Role struct {
	Name     string
	Database string
}

// String returns "name@database", as MongoDB's messages do.
func (r Role) String() string { return r.Name + "@" + r.Database }

// adminDatabase is where roles over all databases live.
const adminDatabase = "admin"

// grants says what a built-in role allows.
type grants struct {
	own       Actions // in the role's database
	all       Actions // in every database
	onCluster Actions
	adminOnly bool
}

// Built-in roles, each a subset of MongoDB's of the same name (https://www.mongodb.com/docs/v7.0/reference/built-in-roles/): the actions of commands
// that Oxbow answers.
const (
	readActions  = Find | ListCollections | ListIndexes | CollStats | DBStats | KillCursors
	writeActions = Insert | Update | Remove | CreateCollection | DropCollection | CreateIndex | DropIndex | RenameCollection
	adminActions = ListCollections | ListIndexes | CollStats | DBStats | CreateCollection | DropCollection | CreateIndex | DropIndex |
		DropDatabase | RenameCollection | Validate | CollMod
	watchActions = ListDatabases | ServerStatus | InProgress | HostInfo | GetLog | GetParameter | Top | Partitions
)

var builtIn = map[string]grants{
	"read":                 {own: readActions},
	"readWrite":            {own: readActions | writeActions},
	"dbAdmin":              {own: adminActions},
	"readAnyDatabase":      {all: readActions, onCluster: ListDatabases, adminOnly: true},
	"readWriteAnyDatabase": {all: readActions | writeActions, onCluster: ListDatabases, adminOnly: true},
	"dbAdminAnyDatabase":   {all: adminActions, onCluster: ListDatabases, adminOnly: true},
	"clusterMonitor":       {all: CollStats | DBStats, onCluster: watchActions, adminOnly: true},
	"root":                 {all: everything, onCluster: everything, adminOnly: true},
}

// RoleNames are the built-in roles, sorted.
func RoleNames() []string { return slices.Sorted(maps.Keys(builtIn)) }

// CheckRole returns RoleNotFound for a role that there is not in that database.
func CheckRole(r Role) error {
	g, ok := builtIn[r.Name]
	if !ok || g.adminOnly && r.Database != adminDatabase || r.Database == External {
		return mongoerr.New(mongoerr.RoleNotFound, "Could not find role: %s", r)
	}
	return nil
}

// Privileges is what a user may do: the sum of the user's roles.
type Privileges struct {
	databases map[string]Actions
	all       Actions // in every database
	cluster   Actions
}

// privilegesOf adds roles up; unknown ones give nothing.
func privilegesOf(roles []Role) *Privileges {
	p := &Privileges{databases: make(map[string]Actions)}
	for _, r := range roles {
		if CheckRole(r) != nil {
			continue
		}
		g := builtIn[r.Name]
		if g.own != 0 {
			p.databases[r.Database] |= g.own
		}
		p.all |= g.all
		p.cluster |= g.onCluster
	}
	return p
}

// Allows reports whether all of the actions are allowed: those of a database in this one, those of the deployment anywhere.
func (p *Privileges) Allows(database string, a Actions) bool {
	return a&ofDatabase&^(p.databases[database]|p.all) == 0 && a&^ofDatabase&^p.cluster == 0
}

// OnDatabase returns what is allowed in a database.
func (p *Privileges) OnDatabase(database string) Actions {
	return (p.databases[database] | p.all) & ofDatabase
}

// OnCluster returns what is allowed on the deployment.
func (p *Privileges) OnCluster() Actions { return p.cluster &^ ofDatabase }

// Databases lists the databases that have actions of their own, sorted; "" stands for every database.
func (p *Privileges) Databases() []string {
	names := slices.Sorted(maps.Keys(p.databases))
	if p.all != 0 {
		names = append([]string{""}, names...)
	}
	return names
}
