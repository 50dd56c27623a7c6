package access

import (
	"encoding/base64"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/xdg-go/scram"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"oxbow/internal/auth"
)

// TestSecretsOfLogins logs in and makes users in every way, right and wrong, while others watch; and looks through everything that comes out,
// the log of slow commands with all of them, the running commands, the metrics, the errors, for passwords and messages of logins.
func TestSecretsOfLogins(t *testing.T) {
	configuration := "http: 127.0.0.1:0\nslow: 1ms\nusers:\n" + entry(t, "boss@admin", auth.Mechanisms(), "root")
	g := serve(t, configuration)
	boss := g.as(t, "boss@admin")
	var mu sync.Mutex
	var seen strings.Builder
	see := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		seen.WriteString(what)
	}
	stop := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			ops, err := command(t, boss, "admin", bson.D{{Key: "currentOp", Value: 1}, {Key: "$all", Value: true}})
			if err != nil {
				t.Errorf("currentOp: %v", err)
				return
			}
			see(textOf(t, ops))
		}
	})
	secrets := []string{"tide", "secret"}
	for n := range 8 {
		secrets = append(secrets, g.converse(t, see, []string{password, "secret-wrong"}[n%2])...)
		name := fmt.Sprint("user", n)
		for _, cmd := range []bson.D{
			{{Key: "createUser", Value: name}, {Key: "pwd", Value: "secret-one"}, {Key: "roles", Value: roles("read")}},
			{{Key: "createUser", Value: name}, {Key: "pwd", Value: "secret-two"}, {Key: "roles", Value: roles("read")}},
			{{Key: "createUser", Value: bson.D{{Key: "user", Value: name}, {Key: "pwd", Value: "secret-three"}}}},
			{{Key: "updateUser", Value: name}, {Key: "pwd", Value: "secret-\x07four"}},
			{{Key: "updateUser", Value: name}, {Key: "pwd", Value: "secret-five"}},
			{{Key: "createuser", Value: name}, {Key: "pwd", Value: "secret-six"}},
			{{Key: "explain", Value: bson.D{{Key: "createUser", Value: name}, {Key: "pwd", Value: "secret-seven"}}}},
		} {
			if _, err := command(t, boss, "admin", cmd); err != nil {
				see(err.Error())
			}
		}
		if err := g.connect(t, credential(options.Client(), name+"@admin", "", "secret-eight")).Ping(t.Context(), nil); err != nil {
			see(err.Error())
		}
	}
	close(stop)
	watching.Wait()
	for _, cmd := range []bson.D{{{Key: "getLog", Value: "global"}}, {{Key: "serverStatus", Value: 1}}, {{Key: "usersInfo", Value: 1}}, {{Key: "getCmdLineOpts", Value: 1}}} {
		answer, err := command(t, boss, "admin", cmd)
		must(t, cmd[0].Key, err)
		see(textOf(t, answer))
	}
	see(g.metrics(t))
	text := seen.String() + g.log.String()
	for _, s := range secrets {
		if at := strings.Index(text, s); at >= 0 {
			t.Errorf("%q shows: …%s…", s, text[max(0, at-200):min(len(text), at+100)])
		}
	}
	for _, s := range []string{"slow command", "command=createUser", "authentication failed", `"createUser"`} {
		if !strings.Contains(text, s) {
			t.Errorf("there is no %s: the test looks at the wrong things", s)
		}
	}
}

// converse goes through a login message by message, and returns what must not show of it. A wrong password ends in the second step.
func (g *gateway) converse(t *testing.T, see func(string), password string) (secrets []string) {
	t.Helper()
	c, err := scram.SHA256.NewClient("boss", password, "")
	must(t, "make a client", err)
	steps := c.NewConversation()
	s := g.dial(t, "127.0.0.1")
	cmd := func(payload string) bson.D {
		return bson.D{{Key: "saslStart", Value: 1}, {Key: "mechanism", Value: "SCRAM-SHA-256"}, {Key: "payload", Value: bson.Binary{Data: []byte(payload)}}}
	}
	answer := ""
	for range 2 {
		payload, err := steps.Step(answer)
		must(t, "step", err)
		got, err := s.try(cmd(payload))
		must(t, "log in", err)
		// The nonces, the proof and the server's signature, as they are and as BSON's text has them.
		for part := range strings.SplitSeq(payload+","+answer, ",") {
			if len(part) > 20 {
				secrets = append(secrets, part)
			}
		}
		secrets = append(secrets, base64.StdEncoding.EncodeToString([]byte(payload)))
		b, ok := got["payload"].(bson.Binary)
		if !ok {
			see(fmt.Sprint(got))
			return secrets
		}
		answer = string(b.Data)
		id := got["conversationId"]
		cmd = func(payload string) bson.D {
			return bson.D{{Key: "saslContinue", Value: 1}, {Key: "conversationId", Value: id}, {Key: "payload", Value: bson.Binary{Data: []byte(payload)}}}
		}
	}
	return append(secrets, answer)
}
