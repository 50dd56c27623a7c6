package kill

import (
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/operation"
)

// Event is what became of one operation.
type Event struct {
	At        time.Time `bson:"at" json:"at"`
	Policy    string    `bson:"policy" json:"policy"`
	Action    string    `bson:"action" json:"action"`
	DryRun    bool      `bson:"dryRun,omitempty" json:"dryRun,omitempty"`
	Member    string    `bson:"member" json:"member"`
	Operation string    `bson:"opid" json:"opid"`
	Kind      string    `bson:"kind" json:"kind"`
	Namespace string    `bson:"ns" json:"ns"`
	Shape     string    `bson:"shape" json:"shape"`
	AgeMillis int64     `bson:"ageMillis" json:"ageMillis"`
	Client    string    `bson:"client,omitempty" json:"client,omitempty"`
	App       string    `bson:"appName,omitempty" json:"appName,omitempty"`
	User      string    `bson:"user,omitempty" json:"user,omitempty"`
	Reason    string    `bson:"reason" json:"reason"`
	Gone      bool      `bson:"gone" json:"gone"`             // it was killed, and has ended
	Took      int64     `bson:"tookMillis" json:"tookMillis"` // from the kill until that
	Error     string    `bson:"error,omitempty" json:"error,omitempty"`
}

// Outcome is what became of the operation in a word: logged, alerted, killed, failed (to be killed, or to end), or spared, in a dry run.
func (e *Event) Outcome() string {
	switch {
	case e.Action == Log.String():
		return "logged"
	case e.Action == Alert.String():
		return "alerted"
	case e.DryRun:
		return "spared"
	case e.Gone:
		return "killed"
	}
	return "failed"
}

// keptEvents is how many events a checkpoint holds at most.
const keptEvents = 100

// state is a checkpoint.
type state struct {
	Events []Event `bson:"events"`
}

// Events returns what a checkpoint tells of, the oldest first.
func Events(checkpoint bson.Document) ([]Event, error) {
	if checkpoint == nil {
		return nil, nil
	}
	var s state
	if err := driver.Unmarshal(checkpoint, &s); err != nil {
		return nil, err
	}
	return s.Events, nil
}

// checkpointOf keeps the latest events.
func checkpointOf(events []Event) (bson.Document, error) {
	return driver.Marshal(state{events[max(0, len(events)-keptEvents):]})
}

func eventOf(o *operation.Operation, p *Policy, why string, now time.Time) Event {
	return Event{
		At: now, Policy: p.Name, Action: p.Action.String(), Member: o.Member, Operation: o.Number(), Kind: o.Kind, Namespace: o.Namespace, Shape: o.Shape,
		AgeMillis: o.Age.Milliseconds(), Client: o.Client, App: o.App, User: o.User, Reason: why,
	}
}
