package command

import (
	"context"
	"strconv"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// none is the Fields of a command that takes nothing but its name.
var none = []string{}

// registerGateway puts the commands that a router answers by itself into the table.
func (t *Table) registerGateway() {
	hello := Entry{Handler: t.hello, Stable: true, NoSession: true, Unlisted: true, Help: "what a driver needs to know of this server"}
	t.Register("hello", hello)
	hello.Handler, hello.Aliases = t.isMaster, []string{"ismaster"}
	t.Register("isMaster", hello)
	t.Register("ping", Entry{Handler: t.ping, Stable: true, NoSession: true, Help: "an empty answer"})
	t.Register("buildInfo", Entry{Handler: t.buildInfo, Aliases: []string{"buildinfo"}, NoSession: true, Help: "version and build"})
	t.Register("isdbgrid", Entry{Handler: t.isDBGrid, Aliases: []string{"isdbGrid"}, NoSession: true, Fields: none, Help: "says that this is a router"})
	t.Register("whatsmyuri", Entry{Handler: t.whatsMyURI, NoSession: true, Fields: none, Help: "the client's address"})
	t.Register("features", Entry{Handler: t.features, NoSession: true, Fields: none, Help: "what an old shell asks for when it connects"})
	t.Register("listCommands", Entry{Handler: t.listCommands, NoSession: true, Fields: none, Help: "the commands of this server"})
	t.Register("getDefaultRWConcern", Entry{Handler: t.getDefaultRWConcern, AdminOnly: true, Fields: []string{"inMemory"}, Help: "read and write concern where a command names none"})

	t.Register("hostInfo", Entry{Handler: t.hostInfo, NoSession: true, Fields: none, Help: "the machine and its system"})
	t.Register("getLog", Entry{Handler: t.getLog, AdminOnly: true, NoSession: true, Fields: none, Help: "recent log lines"})
	t.Register("getCmdLineOpts", Entry{Handler: t.getCmdLineOpts, AdminOnly: true, NoSession: true, Fields: none, Help: "arguments and settings of the process"})
	t.Register("getParameter", Entry{Handler: t.getParameter, AdminOnly: true, NoSession: true, Help: "parameters of the server"})
	t.Register("serverStatus", Entry{Handler: t.serverStatus, NoSession: true, Help: "counters of the process"})
	t.Register("top", Entry{Handler: t.top, AdminOnly: true, Fields: none, Help: "time by collection"})

	t.Register("startSession", Entry{Handler: t.startSession, NoSession: true, Fields: none, Help: "begins a session"})
	t.Register("refreshSessions", Entry{Handler: t.refreshSessions, NoSession: true, Fields: none, Help: "keeps sessions alive"})
	t.Register("endSessions", Entry{Handler: t.endSessions, Stable: true, NoSession: true, Fields: none, Help: "ends sessions"})
	t.Register("killSessions", Entry{Handler: t.killSessions, NoSession: true, Fields: none, Help: "kills sessions with their cursors and commands"})
	t.Register("killAllSessions", Entry{Handler: t.killAllSessions, NoSession: true, Fields: none, Help: "kills the sessions of users"})
	t.Register("killAllSessionsByPattern", Entry{Handler: t.killAllSessionsByPattern, NoSession: true, Fields: none, Help: "kills the sessions that match"})
	t.registerUsers()

	t.Register("currentOp", Entry{Handler: t.currentOp, AdminOnly: true, NoSession: true, Help: "the running commands"})
	t.Register("killOp", Entry{Handler: t.killOp, AdminOnly: true, NoSession: true, Fields: []string{"op"}, Help: "interrupts a running command"})
	t.Intercept("aggregate", t.interceptAggregate)
	t.Intercept("find", t.interceptConfigFind)
}

func (t *Table) ping(context.Context, *Request, *Reply) error { return nil }

func (t *Table) isDBGrid(_ context.Context, _ *Request, reply *Reply) error {
	reply.Elements = bsoncore.AppendInt32Element(reply.Elements, "isdbgrid", 1)
	reply.Elements = bsoncore.AppendStringElement(reply.Elements, "hostname", t.deps.Server.Host)
	return nil
}

func (t *Table) whatsMyURI(_ context.Context, req *Request, reply *Reply) error {
	reply.Elements = bsoncore.AppendStringElement(reply.Elements, "you", req.Conn.Remote)
	return nil
}

// features gives the machine's part of the ids that this process makes, which is all that the command has ever told of a server without JavaScript.
func (t *Table) features(_ context.Context, _ *Request, reply *Reply) error {
	id := newObjectID()
	machine := int32(id[4])<<16 | int32(id[5])<<8 | int32(id[6])
	reply.Elements = bsoncore.AppendInt32Element(reply.Elements, "oidMachine", machine)
	return nil
}

// getDefaultRWConcern gives the implicit defaults of the embedded engine.
func (t *Table) getDefaultRWConcern(_ context.Context, _ *Request, reply *Reply) error {
	dst := reply.Elements
	at, dst := bsoncore.AppendDocumentElementStart(dst, "defaultReadConcern")
	dst = bsoncore.AppendStringElement(dst, "level", "local")
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	at, dst = bsoncore.AppendDocumentElementStart(dst, "defaultWriteConcern")
	dst = bsoncore.AppendInt32Element(dst, "w", 1)
	dst = bsoncore.AppendInt32Element(dst, "wtimeout", 0)
	dst, _ = bsoncore.AppendDocumentEnd(dst, at)
	dst = bsoncore.AppendStringElement(dst, "defaultWriteConcernSource", "implicit")
	dst = bsoncore.AppendStringElement(dst, "defaultReadConcernSource", "implicit")
	reply.Elements = bsoncore.AppendDateTimeElement(dst, "localUpdateWallClockTime", t.deps.Now().UnixMilli())
	return nil
}

func (t *Table) listCommands(_ context.Context, _ *Request, reply *Reply) error {
	at, dst := bsoncore.AppendDocumentElementStart(reply.Elements, "commands")
	for _, e := range t.entries() {
		var one int32
		one, dst = bsoncore.AppendDocumentElementStart(dst, e.name)
		dst = bsoncore.AppendStringElement(dst, "help", e.Help)
		dst = bsoncore.AppendBooleanElement(dst, "requiresAuth", !e.NoSession)
		dst = bsoncore.AppendBooleanElement(dst, "adminOnly", e.AdminOnly)
		var versions []string
		if e.Stable {
			versions = []string{"1"}
		}
		dst = appendArray(dst, "apiVersions", versions)
		dst, _ = bsoncore.AppendDocumentEnd(dst, one)
	}
	reply.Elements, _ = bsoncore.AppendDocumentEnd(dst, at)
	return nil
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
