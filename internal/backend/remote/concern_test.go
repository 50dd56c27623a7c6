package remote

import (
	"context"
	"sync"
	"testing"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/command"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// TestConcern: the write concern of the URI goes with writes that bring none, and with nothing else.
func TestConcern(t *testing.T) {
	var mu sync.Mutex
	var sent bson.Document
	uri := serve(t, func(table *command.Table, _ *command.Deps, _ backend.Backend) {
		for _, name := range []string{"insert", "find", "findAndModify", "drop"} {
			table.Register(name, command.Entry{InTransactions: true, Handler: func(_ context.Context, req *command.Request, _ *command.Reply) error {
				mu.Lock()
				defer mu.Unlock()
				sent = append(bson.Document(nil), req.Body...)
				return nil
			}})
		}
	})
	b := connect(t, uri+"?w=majority&journal=true")
	lsid := driver.D{{Key: "id", Value: driver.Binary{Subtype: 4, Data: make([]byte, 16)}}}
	for _, test := range []struct {
		command driver.D
		want    string
	}{
		{driver.D{{Key: "insert", Value: "c"}}, `{"w": "majority","j": true}`},
		{driver.D{{Key: "drop", Value: "c"}}, `{"w": "majority","j": true}`},
		{driver.D{{Key: "findAndModify", Value: "c"}}, `{"w": "majority","j": true}`},
		{driver.D{{Key: "insert", Value: "c"}, {Key: "writeConcern", Value: driver.D{{Key: "w", Value: 1}}}}, `{"w": {"$numberInt":"1"}}`},
		{driver.D{{Key: "insert", Value: "c"}, {Key: "lsid", Value: lsid}, {Key: "txnNumber", Value: int64(1)}, {Key: "startTransaction", Value: true},
			{Key: "autocommit", Value: false}}, ""},
		{driver.D{{Key: "find", Value: "c"}}, ""},
	} {
		body := encode(t, append(test.command, driver.E{Key: "$db", Value: "d"}))
		if _, err := b.Run(t.Context(), &backend.Request{Body: body}); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		v, _ := bson.Get(sent, "writeConcern")
		mu.Unlock()
		got := ""
		if v.Type != 0 {
			got = bson.Document(v.Data).String()
		}
		if got != test.want {
			t.Errorf("%v was sent with %s, not %s", test.command, got, test.want)
		}
	}
}
