package command

import (
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// BenchmarkPing is what the table itself costs a command.
func BenchmarkPing(b *testing.B) {
	table := newTable()
	req := Request{Conn: &Conn{}}
	body := doc(b, driver.D{{Key: "ping", Value: 1}, {Key: "lsid", Value: lsid()}, {Key: "txnNumber", Value: int64(1)}, {Key: "$db", Value: "admin"}})
	buf := make([]byte, 0, 256)
	b.ReportAllocs()
	for b.Loop() {
		req = Request{Conn: req.Conn, Body: body}
		reply := Reply{Elements: buf}
		table.Run(b.Context(), &req, &reply)
	}
}
