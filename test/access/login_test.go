package access

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow/internal/auth"
)

// TestLogin runs the driver's own conversations.
func TestLogin(t *testing.T) {
	both := auth.Mechanisms()
	g := serve(t, "users:\n"+entry(t, "ada@shop", both, "readWrite")+entry(t, "a=b,c@shop", both, "readWrite")+entry(t, "new@shop", both[:1], "readWrite")+
		entry(t, "old@shop", both[1:], "readWrite"))
	for _, c := range []struct {
		user, mechanism, password string
		want                      int
	}{
		{"ada@shop", "", password, 0},
		{"ada@shop", "SCRAM-SHA-256", password, 0},
		{"ada@shop", "SCRAM-SHA-1", password, 0},
		{"ada@shop", "", "wrong", authenticationFailed},
		{"ada@shop", "SCRAM-SHA-1", "wrong", authenticationFailed},
		{"ada@log", "", password, authenticationFailed},
		{"nobody@shop", "", password, authenticationFailed},
		{"a=b,c@shop", "SCRAM-SHA-256", password, 0},
		{"a=b,c@shop", "SCRAM-SHA-1", password, 0},
		{"new@shop", "", password, 0},
		{"new@shop", "SCRAM-SHA-1", password, authenticationFailed}, // a downgrade
		{"old@shop", "", password, 0},
		{"old@shop", "SCRAM-SHA-256", password, authenticationFailed},
	} {
		client := g.connect(t, credential(options.Client(), c.user, c.mechanism, c.password))
		_, err := client.Database("shop").Collection("c").InsertOne(t.Context(), bson.D{{Key: "by", Value: c.user}})
		if got := codeOf(err); (err == nil) != (c.want == 0) || got != c.want {
			t.Errorf("%s, %q: %v", c.user, c.mechanism, err)
		}
	}
	reply, err := command(t, g.as(t, "ada@shop"), "shop", bson.D{{Key: "connectionStatus", Value: 1}})
	must(t, "connectionStatus", err)
	if text := textOf(t, reply); !strings.Contains(text, `"user":"ada"`) || !strings.Contains(text, `"role":"readWrite"`) {
		t.Errorf("connectionStatus: %s", text)
	}
}

func textOf(t *testing.T, v any) string {
	t.Helper()
	b, err := bson.MarshalExtJSON(v, false, false)
	must(t, "encode", err)
	return string(b)
}

func roles(names ...string) bson.A {
	a := bson.A{}
	for _, n := range names {
		a = append(a, n)
	}
	return a
}

// TestUsers makes, changes and drops users by commands.
func TestUsers(t *testing.T) {
	dir := t.TempDir()
	configuration := "users:\n" + entry(t, "boss@admin", auth.Mechanisms(), "root")
	g := open(t, dir, configuration)
	boss := g.as(t, "boss@admin")
	do := func(cmd bson.D) (bson.M, error) { return command(t, boss, "shop", cmd) }
	create := bson.D{{Key: "createUser", Value: "ada"}, {Key: "pwd", Value: password}, {Key: "roles", Value: roles("read")},
		{Key: "customData", Value: bson.D{{Key: "desk", Value: 4}}}}
	_, err := do(create)
	must(t, "createUser", err)
	_, err = do(create)
	mustCode(t, "a second user of that name", err, 51003)

	ada := g.as(t, "ada@shop")
	shop := ada.Database("shop").Collection("c")
	must(t, "read", shop.FindOne(t.Context(), bson.D{}).Err(), mongo.ErrNoDocuments)
	_, err = shop.InsertOne(t.Context(), bson.D{})
	mustCode(t, "insert with the role read", err, unauthorized)
	_, err = do(bson.D{{Key: "grantRolesToUser", Value: "ada"}, {Key: "roles", Value: roles("readWrite")}})
	must(t, "grantRolesToUser", err)
	_, err = shop.InsertOne(t.Context(), bson.D{})
	must(t, "insert after the grant, on the open connection", err)
	_, err = do(bson.D{{Key: "revokeRolesFromUser", Value: "ada"}, {Key: "roles", Value: roles("readWrite", "read")}})
	must(t, "revokeRolesFromUser", err)
	mustCode(t, "find after the roles were taken", shop.FindOne(t.Context(), bson.D{}).Err(), unauthorized)
	_, err = do(bson.D{{Key: "updateUser", Value: "ada"}, {Key: "pwd", Value: "another"}, {Key: "roles", Value: roles("readWrite")}})
	must(t, "updateUser", err)
	mustCode(t, "the old password", g.as(t, "ada@shop").Ping(t.Context(), nil), authenticationFailed)

	for what, cmd := range map[string]bson.D{
		"a role that there is not":       {{Key: "createUser", Value: "x"}, {Key: "pwd", Value: "y"}, {Key: "roles", Value: roles("reed")}},
		"a role of admin elsewhere":      {{Key: "createUser", Value: "x"}, {Key: "pwd", Value: "y"}, {Key: "roles", Value: roles("root")}},
		"no password":                    {{Key: "createUser", Value: "x"}, {Key: "roles", Value: roles()}},
		"an empty password":              {{Key: "createUser", Value: "x"}, {Key: "pwd", Value: ""}, {Key: "roles", Value: roles()}},
		"no roles":                       {{Key: "createUser", Value: "x"}, {Key: "pwd", Value: "y"}},
		"an unknown mechanism":           {{Key: "createUser", Value: "x"}, {Key: "pwd", Value: "y"}, {Key: "roles", Value: roles()}, {Key: "mechanisms", Value: roles("PLAIN")}},
		"restrictions that are not kept": {{Key: "createUser", Value: "x"}, {Key: "pwd", Value: "y"}, {Key: "roles", Value: roles()}, {Key: "authenticationRestrictions", Value: bson.A{}}},
		"nothing to update":              {{Key: "updateUser", Value: "ada"}},
		"a user that there is not":       {{Key: "updateUser", Value: "eve"}, {Key: "pwd", Value: "y"}},
	} {
		if _, err := do(cmd); codeOf(err) == 0 {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = command(t, boss, "admin", bson.D{{Key: "updateUser", Value: "boss"}, {Key: "pwd", Value: "y"}})
	mustCode(t, "a change of a user of the configuration", err, 20)

	must(t, "disconnect", boss.Disconnect(context.Background()))
	g.close(t)
	g = open(t, dir, configuration)
	defer g.close(t)
	boss = g.as(t, "boss@admin")
	ada = g.connect(t, credential(options.Client(), "ada@shop", "", "another"))
	must(t, "ping after a restart", ada.Ping(t.Context(), nil))
	info, err := do(bson.D{{Key: "usersInfo", Value: "ada"}, {Key: "showPrivileges", Value: true}})
	must(t, "usersInfo", err)
	for _, part := range []string{`"desk":4`, `"role":"readWrite"`, `"SCRAM-SHA-1"`, `"insert"`} {
		if text := textOf(t, info); !strings.Contains(text, part) || strings.Contains(text, "storedKey") {
			t.Errorf("usersInfo lacks %s, or shows keys: %s", part, text)
		}
	}
	_, err = do(bson.D{{Key: "dropUser", Value: "ada"}})
	must(t, "dropUser", err)
	mustCode(t, "a command of a user who is dropped, on the open connection", ada.Database("shop").Collection("c").FindOne(t.Context(), bson.D{}).Err(), unauthorized)
	_, err = do(bson.D{{Key: "dropUser", Value: "ada"}})
	mustCode(t, "a second drop", err, userNotFound)
}

// TestUserMadeAgain drops a user who is logged in and makes one of that name: the new one is another, who knows another password.
func TestUserMadeAgain(t *testing.T) {
	g := serve(t, "users:\n"+entry(t, "boss@admin", auth.Mechanisms()[:1], "root"))
	boss := g.as(t, "boss@admin")
	create := func(password string) {
		_, err := command(t, boss, "shop", bson.D{{Key: "createUser", Value: "ada"}, {Key: "pwd", Value: password}, {Key: "roles", Value: roles("readWrite")}})
		must(t, "createUser", err)
	}
	create(password)
	ada := g.as(t, "ada@shop").Database("shop").Collection("c")
	must(t, "read", ada.FindOne(t.Context(), bson.D{}).Err(), mongo.ErrNoDocuments)
	_, err := command(t, boss, "shop", bson.D{{Key: "dropUser", Value: "ada"}})
	must(t, "dropUser", err)
	create("another")
	mustCode(t, "a command of the user before", ada.FindOne(t.Context(), bson.D{}).Err(), unauthorized)
	anew := g.connect(t, credential(options.Client(), "ada@shop", "", "another")).Database("shop").Collection("c")
	must(t, "read as the new one", anew.FindOne(t.Context(), bson.D{}).Err(), mongo.ErrNoDocuments)
}

// TestFirstUser makes the first user of a gateway that has none and lets nobody in.
func TestFirstUser(t *testing.T) {
	g := serve(t, "auth: on\n")
	nobody := g.as(t, "")
	mustCode(t, "find", nobody.Database("shop").Collection("c").FindOne(t.Context(), bson.D{}).Err(), unauthorized)
	create := func(name string) error {
		_, err := command(t, nobody, "admin", bson.D{{Key: "createUser", Value: name}, {Key: "pwd", Value: password}, {Key: "roles", Value: roles("root")}})
		return err
	}
	must(t, "the first user", create("first"))
	mustCode(t, "a second one by nobody", create("second"), unauthorized)
	must(t, "find", g.as(t, "first@admin").Database("shop").Collection("c").FindOne(t.Context(), bson.D{}).Err(), mongo.ErrNoDocuments)
}

// TestOthers tries what belongs to another user.
func TestOthers(t *testing.T) {
	one := auth.Mechanisms()[:1]
	g := serve(t, "users:\n"+entry(t, "ada@shop", one, "readWrite")+entry(t, "bob@shop", one, "readWrite", "read@log")+entry(t, "boss@admin", one, "root"))
	ada, bob, boss := g.as(t, "ada@shop"), g.as(t, "bob@shop"), g.as(t, "boss@admin")
	_, err := ada.Database("shop").Collection("c").InsertMany(t.Context(), []any{bson.D{}, bson.D{}, bson.D{}})
	must(t, "insert", err)
	_, err = boss.Database("other").Collection("c").InsertOne(t.Context(), bson.D{})
	must(t, "insert", err)

	var found struct{ Cursor struct{ ID int64 } }
	must(t, "find", ada.Database("shop").RunCommand(t.Context(), bson.D{{Key: "find", Value: "c"}, {Key: "batchSize", Value: 1}}).Decode(&found))
	more := bson.D{{Key: "getMore", Value: found.Cursor.ID}, {Key: "collection", Value: "c"}}
	_, err = command(t, bob, "shop", more)
	mustCode(t, "getMore on another's cursor", err, unauthorized)
	names, err := bob.ListDatabaseNames(t.Context(), bson.D{})
	must(t, "listDatabases", err)
	if got := strings.Join(names, " "); got != "shop" {
		t.Errorf("bob sees the databases %s", got)
	}
	if names, err = boss.ListDatabaseNames(t.Context(), bson.D{}); err != nil || len(names) < 2 {
		t.Errorf("root sees the databases %v, %v", names, err)
	}
	_, err = command(t, bob, "shop", bson.D{{Key: "usersInfo", Value: "bob"}})
	must(t, "usersInfo of oneself", err)
	_, err = command(t, bob, "shop", bson.D{{Key: "usersInfo", Value: "ada"}})
	mustCode(t, "usersInfo of another", err, unauthorized)
	both := bson.D{{Key: "user", Value: "bob"}, {Key: "db", Value: "shop"}, {Key: "forAllDBs", Value: true}}
	_, err = command(t, bob, "admin", bson.D{{Key: "usersInfo", Value: both}, {Key: "showCredentials", Value: true}})
	mustCode(t, "usersInfo of all, with one's own name before it", err, unauthorized)
	_, err = command(t, bob, "admin", bson.D{{Key: "currentOp", Value: 1}, {Key: "$ownOps", Value: true}, {Key: "$all", Value: true}, {Key: "$ownOps", Value: false}})
	mustCode(t, "currentOp with a field twice", err, duplicateField)
	_, err = command(t, bob, "admin", bson.D{{Key: "aggregate", Value: 1}, {Key: "pipeline", Value: stages("$currentOp", bson.D{{Key: "allUsers", Value: true}})}, {Key: "cursor", Value: bson.D{}}})
	mustCode(t, "$currentOp of all users", err, unauthorized)
	ops, err := command(t, bob, "admin", bson.D{{Key: "aggregate", Value: 1}, {Key: "pipeline", Value: stages("$currentOp", bson.D{{Key: "idleConnections", Value: true}, {Key: "idleCursors", Value: true}})}, {Key: "cursor", Value: bson.D{}}})
	must(t, "$currentOp", err)
	if text := textOf(t, ops); strings.Contains(text, `"ada"`) || strings.Contains(text, `"type":"idleCursor"`) || !strings.Contains(text, `"bob"`) {
		t.Errorf("bob sees the operations %s", text)
	}
	_, err = command(t, ada, "shop", more)
	must(t, "getMore on one's own cursor", err)
	uid := bson.Binary{Data: make([]byte, 32)}
	_, err = command(t, bob, "shop", bson.D{{Key: "killSessions", Value: bson.A{bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}}, {Key: "uid", Value: uid}}}}})
	mustCode(t, "a session of another", err, unauthorized)
	_, err = command(t, boss, "oxbow", bson.D{{Key: "find", Value: "users"}})
	mustCode(t, "the catalog, for root", err, unauthorized)
}

// TestSessionsWithoutLogin tries to end a user's session, and to begin one, without a login.
func TestSessionsWithoutLogin(t *testing.T) {
	g := serve(t, "users:\n"+entry(t, "ada@shop", auth.Mechanisms()[:1], "readWrite")+entry(t, "boss@admin", auth.Mechanisms()[:1], "root"))
	ada, nobody := g.as(t, "ada@shop"), g.as(t, "")
	session, err := ada.StartSession()
	must(t, "start a session", err)
	ctx := mongo.NewSessionContext(t.Context(), session)
	defer session.EndSession(ctx)
	shop := ada.Database("shop")
	_, err = shop.Collection("c").InsertMany(ctx, []any{bson.D{}, bson.D{}, bson.D{}})
	must(t, "insert", err)
	cursor, err := shop.Collection("c").Find(ctx, bson.D{}, options.Find().SetBatchSize(1))
	must(t, "find", err)
	defer cursor.Close(ctx)

	digest := sha256.Sum256([]byte("ada@shop"))
	_, id := session.ID().Lookup("id").Binary()
	named := bson.D{{Key: "id", Value: bson.Binary{Subtype: 4, Data: id}}, {Key: "uid", Value: bson.Binary{Data: digest[:]}}}
	_, err = command(t, nobody, "admin", bson.D{{Key: "endSessions", Value: bson.A{named}}})
	must(t, "endSessions without a login", err)
	n := 0
	for cursor.Next(ctx) {
		n++
	}
	must(t, "read on in a session that a stranger ended", cursor.Err())
	if n != 3 {
		t.Errorf("read %d documents", n)
	}
	theirs, err := nobody.StartSession()
	must(t, "start a session", err)
	defer theirs.EndSession(t.Context())
	must(t, "ping without a login", nobody.Ping(mongo.NewSessionContext(t.Context(), theirs), nil))
	list, err := command(t, g.as(t, "boss@admin"), "admin", bson.D{{Key: "aggregate", Value: 1},
		{Key: "pipeline", Value: stages("$listLocalSessions", bson.D{{Key: "allUsers", Value: true}})}, {Key: "cursor", Value: bson.D{}}})
	must(t, "$listLocalSessions", err)
	text := textOf(t, list)
	for _, c := range []struct {
		of   *mongo.Session
		want bool
	}{{session, true}, {theirs, false}} {
		_, id := c.of.ID().Lookup("id").Binary()
		if strings.Contains(text, base64.StdEncoding.EncodeToString(id)) != c.want {
			t.Errorf("session %x is listed: %v", id, !c.want)
		}
	}
}

// TestSecrets looks for passwords and keys where they must not be.
func TestSecrets(t *testing.T) {
	text := entry(t, "boss@admin", auth.Mechanisms(), "root")
	g := serve(t, "users:\n"+text)
	boss := g.as(t, "boss@admin")
	for _, cmd := range []bson.D{
		{{Key: "createUser", Value: "ada"}, {Key: "pwd", Value: "secret-one"}, {Key: "roles", Value: roles("reed")}},
		{{Key: "createUser", Value: "ada"}, {Key: "pwd", Value: "secret-one"}, {Key: "roles", Value: roles()}},
		{{Key: "updateUser", Value: "ada"}, {Key: "pwd", Value: "secret-\x07two"}},
		{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "PLAIN"}, {Key: "payload", Value: bson.Binary{Data: []byte("\x00ada\x00secret-three")}}},
	} {
		if _, err := command(t, boss, "admin", cmd); err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("an error shows a secret: %v", err)
		}
	}
	g.connect(t, credential(options.Client(), "boss@admin", "", "secret-four")).Ping(t.Context(), nil)
	seen := g.log.String()
	for _, cmd := range []bson.D{
		{{Key: "serverStatus", Value: 1}}, {{Key: "getCmdLineOpts", Value: 1}}, {{Key: "getParameter", Value: "*"}}, {{Key: "getLog", Value: "global"}},
		{{Key: "currentOp", Value: 1}, {Key: "$all", Value: true}}, {{Key: "usersInfo", Value: 1}}, {{Key: "connectionStatus", Value: 1}, {Key: "showPrivileges", Value: true}},
	} {
		reply, err := command(t, boss, "admin", cmd)
		must(t, cmd[0].Key, err)
		seen += textOf(t, reply)
	}
	secrets := []string{"secret", password}
	for part := range strings.SplitSeq(text, "$") {
		if len(part) > 20 {
			secrets = append(secrets, part[:20])
		}
	}
	for _, s := range secrets {
		if strings.Contains(seen, s) {
			t.Errorf("%q shows", s)
		}
	}
	if !strings.Contains(seen, "authentication failed") {
		t.Error("a login that fails is not logged")
	}
}
