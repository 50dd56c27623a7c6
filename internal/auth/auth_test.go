package auth

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/xdg-go/scram"
	"pgregory.net/rapid"

	"oxbow/internal/mongoerr"
)

// user makes a user with credentials of both mechanisms.
func user(t testing.TB, name, database, password string, roles ...Role) User {
	t.Helper()
	u := User{UserName: UserName{name, database}, Credentials: map[Mechanism]Credential{}, Roles: roles}
	for _, m := range Mechanisms() {
		c, err := NewCredential(m, name, password)
		if err != nil {
			t.Fatal(err)
		}
		u.Credentials[m] = c
	}
	return u
}

// client is the other side of a conversation, as a driver has it.
func client(t testing.TB, m Mechanism, name, password string) *scram.ClientConversation {
	t.Helper()
	var c *scram.Client
	var err error
	if m == SHA1 {
		c, err = scram.SHA1.NewClientUnprepped(name, digest(name, password), "")
	} else {
		c, err = scram.SHA256.NewClient(name, password, "")
	}
	if err != nil {
		t.Fatal(err)
	}
	return c.NewConversation()
}

// talk runs a whole conversation and returns who the client turned out to be.
func talk(t testing.TB, s *Set, database string, m Mechanism, name, password string, skipEmpty bool) (*User, error) {
	t.Helper()
	server, err := NewConversation(s, database, m, skipEmpty)
	if err != nil {
		return nil, err
	}
	c := client(t, m, name, password)
	text := ""
	for range 3 {
		if text, err = c.Step(text); err != nil {
			t.Fatalf("the client refuses the server: %v", err)
		}
		answer, done, err := server.Step([]byte(text))
		if err != nil {
			return nil, err
		}
		text = string(answer)
		if done {
			return server.User(), nil
		}
	}
	t.Fatal("no end after three steps")
	return nil, nil
}

func isFailed(err error) bool {
	var e *mongoerr.Error
	return errors.As(err, &e) && e.Code == mongoerr.AuthenticationFailed && e.Message == "Authentication failed."
}

func TestConversation(t *testing.T) {
	s := NewSet(nil, user(t, "ada", "admin", "tide"), user(t, "a,b=c", "app", "påssword"))
	for _, m := range Mechanisms() {
		for _, skip := range []bool{true, false} {
			for _, c := range []struct {
				database, name, password string
				ok                       bool
			}{
				{"admin", "ada", "tide", true},
				{"app", "a,b=c", "påssword", true},
				{"admin", "ada", "ebb", false},
				{"app", "ada", "tide", false}, // another database is another user
				{"admin", "nobody", "tide", false},
			} {
				u, err := talk(t, s, c.database, m, c.name, c.password, skip)
				if c.ok && (err != nil || u == nil || u.Name != c.name || u.Database != c.database) {
					t.Errorf("%s %s@%s: %v, %v", m, c.name, c.database, u, err)
				}
				if !c.ok && !isFailed(err) {
					t.Errorf("%s %s@%s with a wrong password gives %v, %v", m, c.name, c.database, u, err)
				}
			}
		}
	}
}

// A user that doesn't exist can't be told from one that does by the first answer, nor by asking twice.
func TestUnknownUserLooksLikeAnother(t *testing.T) {
	s := NewSet(nil, user(t, "ada", "admin", "tide"))
	first := func(s *Set, name string) []string {
		c, err := NewConversation(s, "admin", SHA256, true)
		if err != nil {
			t.Fatal(err)
		}
		answer, done, err := c.Step([]byte("n,,n=" + name + ",r=abcdefgh"))
		if err != nil || done {
			t.Fatalf("%s: %v, done %v", name, err, done)
		}
		return strings.Split(string(answer), ",")
	}
	known, unknown := first(s, "ada"), first(s, "bob")
	if len(known) != 3 || len(unknown) != 3 || len(known[1]) != len(unknown[1]) || known[2] != unknown[2] {
		t.Errorf("known %v, unknown %v", known, unknown)
	}
	later := NewSet(s, user(t, "cleo", "admin", "tide"))
	if again := first(later, "bob"); again[1] != unknown[1] {
		t.Errorf("the salt of a user that doesn't exist changed from %s to %s", unknown[1], again[1])
	}
	if got := s.MechanismsOf(UserName{"bob", "admin"}); len(got) != 2 {
		t.Errorf("a user that doesn't exist has the mechanisms %v", got)
	}
}

func TestOneMechanismOnly(t *testing.T) {
	u := user(t, "ada", "admin", "tide")
	delete(u.Credentials, SHA1)
	s := NewSet(nil, u)
	if _, err := talk(t, s, "admin", SHA1, "ada", "tide", true); !isFailed(err) {
		t.Errorf("a downgrade to SCRAM-SHA-1 gives %v", err)
	}
	if got := s.MechanismsOf(u.UserName); len(got) != 1 || got[0] != SHA256 {
		t.Errorf("mechanisms %v", got)
	}
	if _, err := NewConversation(s, "admin", "PLAIN", true); err == nil || mongoerr.From(err).Code != mongoerr.MechanismUnavailable {
		t.Errorf("PLAIN gives %v", err)
	}
}

func TestConversationOfAnotherAuthorization(t *testing.T) {
	s := NewSet(nil, user(t, "ada", "admin", "tide"), user(t, "bob", "admin", "ebb"))
	c, err := NewConversation(s, "admin", SHA256, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Step([]byte("n,a=bob,n=ada,r=abcdefgh")); !isFailed(err) {
		t.Errorf("ada as bob gives %v", err)
	}
}

// FuzzConversation feeds bytes to both steps: nothing but the right proof ends as a user, and nothing panics.
func FuzzConversation(f *testing.F) {
	s := NewSet(nil, user(f, "ada", "admin", "tide"))
	f.Add("n,,n=ada,r=abcdefgh", "c=biws,r=abcdefgh,p=AAAA")
	f.Add("p=tls-unique,,n=ada,r=x", "")
	f.Add("n,,n==2Cada,r=x", "c=,r=,p=")
	f.Fuzz(func(t *testing.T, first, second string) {
		c, err := NewConversation(s, "admin", SHA256, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, done, err := c.Step([]byte(first)); err != nil {
			if !done || !isFailed(err) {
				t.Fatalf("a first step fails with %v, done %v", err, done)
			}
			return
		}
		if _, _, err := c.Step([]byte(second)); !isFailed(err) || c.User() != nil {
			t.Fatalf("guessed: %v", err)
		}
	})
}

func TestCredentialText(t *testing.T) {
	for _, m := range Mechanisms() {
		c, err := NewCredential(m, "ada", "tide")
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParseCredential(m, c.String())
		if err != nil || back.Iterations != c.Iterations || !bytes.Equal(back.Salt, c.Salt) || !bytes.Equal(back.StoredKey, c.StoredKey) {
			t.Errorf("%s: %v, %v", m, back, err)
		}
	}
	c, _ := NewCredential(SHA256, "ada", "tide")
	for what, text := range map[string]string{
		"no parts": "secret", "other mechanism's keys": mustCredential(t, SHA1).String(), "few iterations": strings.Replace(c.String(), "15000$", "10$", 1),
		"no number": "x$AAAA$AAAA$AAAA", "no base64": "15000$AAAA$?$AAAA", "short salt": "15000$AAAA$AAAA$AAAA",
	} {
		if _, err := ParseCredential(SHA256, text); err == nil || strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, password := range []string{"", "bell\x07"} {
		if _, err := NewCredential(SHA256, "ada", password); err == nil || password != "" && strings.Contains(err.Error(), password) {
			t.Errorf("password %q gives %v", password, err)
		}
	}
}

func mustCredential(t *testing.T, m Mechanism) Credential {
	c, err := NewCredential(m, "ada", "tide")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPrivileges(t *testing.T) {
	for _, c := range []struct {
		roles    []Role
		database string
		actions  Actions
		want     bool
	}{
		{nil, "app", Find, false},
		{[]Role{{"read", "app"}}, "app", Find | ListIndexes, true},
		{[]Role{{"read", "app"}}, "app", Insert, false},
		{[]Role{{"read", "app"}}, "other", Find, false},
		{[]Role{{"read", "admin"}}, "app", Find, false}, // "admin" is a database like others for roles of one database
		{[]Role{{"readWrite", "app"}}, "app", Find | Insert | CreateIndex, true},
		{[]Role{{"readWrite", "app"}}, "app", DropDatabase, false},
		{[]Role{{"dbAdmin", "app"}}, "app", DropDatabase | Validate, true},
		{[]Role{{"dbAdmin", "app"}}, "app", Find, false},
		{[]Role{{"read", "app"}, {"dbAdmin", "app"}}, "app", Find | DropDatabase, true},
		{[]Role{{"clusterMonitor", "admin"}}, "app", CollStats | ServerStatus, true},
		{[]Role{{"clusterMonitor", "admin"}}, "app", Find, false},
		{[]Role{{"clusterMonitor", "admin"}}, "app", KillOperation, false},
		{[]Role{{"clusterMonitor", "app"}}, "app", ServerStatus, false}, // not a role of that database
		{[]Role{{"readAnyDatabase", "admin"}}, "app", Find | ListDatabases, true},
		{[]Role{{"root", "admin"}}, "app", everything, true},
		{[]Role{{"rooot", "admin"}}, "app", Find, false},
	} {
		if got := privilegesOf(c.roles).Allows(c.database, c.actions); got != c.want {
			t.Errorf("%v on %s for %s: %v", c.roles, c.database, c.actions, got)
		}
	}
}

// What several roles allow is what they allow one by one: no two make a third.
func TestRolesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		databases := []string{"admin", "app", "log"}
		role := rapid.Custom(func(t *rapid.T) Role {
			return Role{rapid.SampledFrom(RoleNames()).Draw(t, "name"), rapid.SampledFrom(databases).Draw(t, "database")}
		})
		roles := rapid.SliceOfN(role, 0, 4).Draw(t, "roles")
		database := rapid.SampledFrom(databases).Draw(t, "database")
		action := Actions(1) << rapid.IntRange(0, len(actionNames)-1).Draw(t, "action")
		want := false
		for _, r := range roles {
			want = want || privilegesOf([]Role{r}).Allows(database, action)
		}
		if got := privilegesOf(roles).Allows(database, action); got != want {
			t.Fatalf("%v on %s for %s: %v", roles, database, action, got)
		}
	})
}

func TestActionNames(t *testing.T) {
	if Actions(1)<<len(actionNames) != afterLast {
		t.Fatalf("%d names for the actions below %b", len(actionNames), afterLast)
	}
	if got := (Find | AnyCommand).String(); got != "find, anyAction" {
		t.Errorf("%s", got)
	}
}
