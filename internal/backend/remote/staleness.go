package remote

import (
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// The limits of maxStalenessSeconds (https://www.mongodb.com/docs/manual/core/read-preference-staleness/): a primary writes a no-op when it has
// been idle for idleWrites, and a server is looked at once in a heartbeat, so that less cannot be told.
const (
	leastStaleness = 90 * time.Second
	idleWrites     = 10 * time.Second
)

// parseStaleness reads maxStalenessSeconds; -1 is none.
func parseStaleness(v bson.Value) (time.Duration, error) {
	seconds, ok := v.AsInt64OK()
	switch {
	case !ok || !bson.IsNumber(v.Type):
		return 0, mongoerr.New(mongoerr.TypeMismatch, "BSON field '$readPreference.maxStalenessSeconds' is the wrong type '%s', expected types '[long, int, decimal, double]'",
			bson.TypeName(v.Type))
	case seconds == -1 || seconds == 0:
		return 0, nil
	case seconds < 0 || seconds > int64(1<<31-1):
		return 0, mongoerr.New(mongoerr.BadValue, "maxStalenessSeconds must be a positive number of seconds; found: %d", seconds)
	}
	return time.Duration(seconds) * time.Second, nil
}

// checkStaleness refuses what cannot be told of a replica set whose servers are looked at every heartbeat.
func (c *choice) checkStaleness(heartbeat time.Duration) error {
	if least := max(leastStaleness, heartbeat+idleWrites); c.staleness != 0 && c.staleness < least {
		return mongoerr.New(mongoerr.MaxStalenessOutOfRange, "maxStalenessSeconds must be at least %d seconds, found %d",
			int64(least/time.Second), int64(c.staleness/time.Second))
	}
	return nil
}

// fresh returns the secondaries that are no further behind than the preference allows: behind the primary, or behind the one that has seen the latest write
// where there is no primary. Their own clocks do not matter: each is compared with what it said itself.
func (c *choice) fresh(primary, secondaries []description.Server) []description.Server {
	if c.staleness == 0 {
		return secondaries
	}
	var latest time.Time
	for _, s := range secondaries {
		if s.LastWriteTime.After(latest) {
			latest = s.LastWriteTime
		}
	}
	var out []description.Server
	for _, s := range secondaries {
		behind := latest.Sub(s.LastWriteTime)
		if len(primary) > 0 {
			behind = s.LastUpdateTime.Sub(s.LastWriteTime) - primary[0].LastUpdateTime.Sub(primary[0].LastWriteTime)
		}
		if behind+s.HeartbeatInterval <= c.staleness {
			out = append(out, s)
		}
	}
	return out
}
