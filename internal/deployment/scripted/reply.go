package scripted

import (
	"maps"
	"time"

	driver "go.mongodb.org/mongo-driver/v2/bson"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
)

// answerLocked answers what a member tells of itself and its set; false: the command is about data.
func (m *Member) answerLocked(name string) (driver.D, bool) {
	if m.Refuse[name] {
		return failure(mongoerr.Unauthorized, "not authorized on admin to execute command { "+name+": 1 }"), true
	}
	switch name {
	case "hello", "isMaster", "ismaster":
		return m.helloLocked(), true
	case "ping", "endSessions":
		return okay(nil), true
	case "replSetGetStatus":
		return m.set.statusLocked(), true
	case "replSetGetConfig":
		return m.set.configLocked(), true
	case "serverStatus":
		return okay(append(m.oplogLocked(), m.Status...)), true
	case "dbStats":
		return okay(m.Disk), true
	case "collStats":
		size := int64(1 << 30)
		if m.set.Filling {
			size /= 2
		}
		return okay(driver.D{{Key: "size", Value: size}, {Key: "maxSize", Value: int64(1 << 30)}}), true
	}
	return nil, false
}

// helloLocked is what a member tells drivers (https://www.mongodb.com/docs/manual/reference/command/hello/).
func (m *Member) helloLocked() driver.D {
	s := m.set
	var hosts, passives, arbiters []string
	for _, other := range s.Members {
		switch {
		case other.State == "ARBITER":
			arbiters = append(arbiters, other.Host)
		case other.Hidden:
		case other.Delay > 0:
			passives = append(passives, other.Host)
		default:
			hosts = append(hosts, other.Host)
		}
	}
	now := s.clock()
	doc := driver.D{
		{Key: "isWritablePrimary", Value: m.State == "PRIMARY"}, {Key: "ismaster", Value: m.State == "PRIMARY"}, {Key: "secondary", Value: m.State == "SECONDARY"},
		{Key: "helloOk", Value: true}, {Key: "setName", Value: s.Name}, {Key: "setVersion", Value: s.version}, {Key: "me", Value: m.Host}, {Key: "hosts", Value: hosts},
		{Key: "maxBsonObjectSize", Value: 16 << 20}, {Key: "maxMessageSizeBytes", Value: 48_000_000}, {Key: "maxWriteBatchSize", Value: 100_000},
		{Key: "localTime", Value: now}, {Key: "logicalSessionTimeoutMinutes", Value: 30}, {Key: "minWireVersion", Value: 0}, {Key: "maxWireVersion", Value: 21},
		{Key: "readOnly", Value: false}, {Key: "lastWrite", Value: driver.D{{Key: "lastWriteDate", Value: now.Add(-m.Lag)}}},
	}
	add := func(key string, value any) { doc = append(doc, driver.E{Key: key, Value: value}) }
	if passives != nil {
		add("passives", passives)
	}
	if arbiters != nil {
		add("arbiters", arbiters)
	}
	if p := s.primaryLocked(); p != nil {
		add("primary", p.Host)
	}
	if m.State == "ARBITER" {
		add("arbiterOnly", true)
	}
	if m.Hidden {
		add("hidden", true)
	}
	if m.Delay > 0 {
		add("secondaryDelaySecs", int64(m.Delay/time.Second))
	}
	if m.Tags != nil {
		add("tags", m.Tags)
	}
	if m.State == "PRIMARY" {
		var id driver.ObjectID
		id[11] = byte(s.Term)
		add("electionId", id)
	}
	return okay(doc)
}

// stateNumbers are those of replSetGetStatus (https://www.mongodb.com/docs/manual/reference/replica-states/).
var stateNumbers = map[string]int{"STARTUP": 0, "PRIMARY": 1, "SECONDARY": 2, "RECOVERING": 3, "STARTUP2": 5, "UNKNOWN": 6, "ARBITER": 7, "DOWN": 8, "ROLLBACK": 9}

// statusLocked is what replSetGetStatus tells (https://www.mongodb.com/docs/manual/reference/command/replSetGetStatus/).
func (s *Set) statusLocked() driver.D {
	now := s.clock()
	members := driver.A{}
	votes, data := 0, 0
	for i, m := range s.Members {
		state, health := m.State, 1
		if m.Down {
			state, health = "(not reachable/healthy)", 0
		}
		doc := driver.D{{Key: "_id", Value: i}, {Key: "name", Value: m.Host}, {Key: "health", Value: float64(health)}, {Key: "state", Value: stateNumbers[m.State]}, {Key: "stateStr", Value: state}}
		switch {
		case m.Down:
			doc = append(doc, driver.E{Key: "optimeDate", Value: time.Unix(0, 0)}, driver.E{Key: "lastHeartbeatMessage", Value: "Error connecting to " + m.Host})
		case m.State != "ARBITER":
			doc = append(doc, driver.E{Key: "optimeDate", Value: now.Add(-m.Lag)})
		}
		members = append(members, doc)
		if !m.NoVote {
			votes++
			if m.State != "ARBITER" {
				data++
			}
		}
	}
	return okay(driver.D{{Key: "set", Value: s.Name}, {Key: "date", Value: now}, {Key: "term", Value: s.Term}, {Key: "heartbeatIntervalMillis", Value: int64(2000)},
		{Key: "writeMajorityCount", Value: min(votes/2+1, data)}, {Key: "members", Value: members}})
}

// configLocked is what replSetGetConfig tells (https://www.mongodb.com/docs/manual/reference/replica-configuration/).
func (s *Set) configLocked() driver.D {
	members := driver.A{}
	for i, m := range s.Members {
		votes := 1
		if m.NoVote {
			votes = 0
		}
		tags := maps.Clone(m.Tags)
		if tags == nil {
			tags = map[string]string{}
		}
		members = append(members, driver.D{{Key: "_id", Value: i}, {Key: "host", Value: m.Host}, {Key: "arbiterOnly", Value: m.State == "ARBITER"}, {Key: "hidden", Value: m.Hidden},
			{Key: "tags", Value: tags}, {Key: "secondaryDelaySecs", Value: int64(m.Delay / time.Second)}, {Key: "votes", Value: votes}})
	}
	return okay(driver.D{{Key: "config", Value: driver.D{{Key: "_id", Value: s.Name}, {Key: "version", Value: s.version}, {Key: "members", Value: members}}}})
}

// oplogLocked is the section oplog of serverStatus.
func (m *Member) oplogLocked() driver.D {
	last := m.set.clock().Add(-m.Lag)
	return driver.D{{Key: "oplog", Value: driver.D{
		{Key: "latestOptime", Value: driver.Timestamp{T: uint32(last.Unix())}}, {Key: "earliestOptime", Value: driver.Timestamp{T: uint32(last.Add(-m.set.Oplog).Unix())}}}}}
}

// okay adds ok: 1 to a reply.
func okay(reply driver.D) driver.D {
	return append(reply[:len(reply):len(reply)], driver.E{Key: "ok", Value: 1.0})
}

func failure(code mongoerr.Code, message string) driver.D {
	return driver.D{{Key: "ok", Value: 0.0}, {Key: "errmsg", Value: message}, {Key: "code", Value: int32(code)}, {Key: "codeName", Value: code.String()}}
}

func marshal(doc driver.D) bson.Document {
	out, err := driver.Marshal(doc)
	if err != nil {
		panic(err) // nothing that a test could cause
	}
	return out
}
