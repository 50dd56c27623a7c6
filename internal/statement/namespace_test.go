package statement

import (
	"strings"
	"testing"

	driver "go.mongodb.org/mongo-driver/v2/bson"
)

// The error names the database, which stands behind the collection in a command.
func TestBadNamespaceIsNamedWhole(t *testing.T) {
	aggregate := func() []byte {
		b, err := driver.Marshal(driver.D{{Key: "aggregate", Value: "$x"}, {Key: "pipeline", Value: driver.A{}}, {Key: "cursor", Value: driver.D{}}, {Key: "$db", Value: "d"}})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	find, err := driver.Marshal(driver.D{{Key: "find", Value: "$x"}, {Key: "$db", Value: "d"}})
	if err != nil {
		t.Fatal(err)
	}
	_, ofAggregate := ParseAggregate(aggregate())
	_, ofFind := ParseFind(find)
	for command, err := range map[string]error{"aggregate": ofAggregate, "find": ofFind} {
		if err == nil || !strings.Contains(err.Error(), "Invalid namespace specified 'd.$x'") {
			t.Errorf("%s: %v", command, err)
		}
	}
}
