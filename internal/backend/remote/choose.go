package remote

import (
	"slices"
	"time"

	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"

	"go.mongodb.org/mongo-driver/v2/mongo/address"
	"go.mongodb.org/mongo-driver/v2/tag"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
)

// choice selects the servers that a command may go to: those of a read preference, or the one that holds a cursor
// (https://www.mongodb.com/docs/manual/core/read-preference/).
type choice struct {
	holder address.Address // the server of the command's cursor or transaction; "": none
	moves  bool            // any router will do where the holder is gone
	mode   string
	tags   []tag.Set // alternatives in order; none: any server

	staleness time.Duration // the most that a secondary may be behind; 0: any
	window    time.Duration // the most that a server may be further away than the nearest
}

// choose reads what decides about the server out of a command.
func (b *Backend) choose(name string, arg bson.Value, body bson.Document) (choice, error) {
	if holder, ok := b.cursors.holder(name, arg, body); ok {
		return choice{holder: holder}, nil
	}
	if holder, moves, ok := b.transactionHolder(name, body); ok {
		return choice{holder: holder, moves: moves, window: b.window}, nil
	}
	c := b.primary()
	v, ok := bson.Get(body, "$readPreference")
	if !ok {
		return c, nil
	}
	it := bson.Elements(v.Data)
	for it.Next() {
		switch string(it.Key()) {
		case "mode":
			c.mode, _ = it.Value().StringValueOK()
		case "tags":
			c.tags = parseTags(it.Value())
		case "maxStalenessSeconds":
			var err error
			if c.staleness, err = parseStaleness(it.Value()); err != nil {
				return c, err
			}
		case "hedge":
		default:
			return c, mongoerr.New(mongoerr.CommandNotSupported, "'$readPreference.%s' is not supported yet", it.Key())
		}
	}
	if c.mode == "primary" && c.staleness != 0 {
		return c, mongoerr.New(mongoerr.FailedToParse, "mode 'primary' does not allow for maxStalenessSeconds")
	}
	return c, nil
}

// parseTags reads the array of tag documents; an empty document allows any server.
func parseTags(v bson.Value) []tag.Set {
	var sets []tag.Set
	it := bson.Elements(v.Data)
	for it.Next() {
		var set tag.Set
		fields := bson.Elements(it.Value().Data)
		for fields.Next() {
			s, _ := fields.Value().StringValueOK()
			set = append(set, tag.Tag{Name: string(fields.Key()), Value: s})
		}
		sets = append(sets, set)
	}
	return sets
}

// SelectServer implements description.ServerSelector.
func (c choice) SelectServer(t description.Topology, candidates []description.Server) ([]description.Server, error) {
	servers, err := c.suitable(t, candidates)
	return c.near(servers), err
}

// near leaves out the servers that are further away than the nearest by more than the window, as drivers do
// (https://www.mongodb.com/docs/manual/core/read-preference-mechanics/#server-selection-algorithm).
func (c choice) near(servers []description.Server) []description.Server {
	if len(servers) < 2 {
		return servers
	}
	nearest := servers[0].AverageRTT
	for _, s := range servers {
		nearest = min(nearest, s.AverageRTT)
	}
	return slices.DeleteFunc(slices.Clone(servers), func(s description.Server) bool { return s.AverageRTT > nearest+c.window })
}

// suitable returns the servers that the command may go to, however far away.
func (c choice) suitable(t description.Topology, candidates []description.Server) ([]description.Server, error) {
	if c.holder != "" {
		held := slices.DeleteFunc(slices.Clone(candidates), func(s description.Server) bool { return s.Addr != c.holder })
		if len(held) == 0 && c.moves {
			return ofKind(candidates, description.ServerKindMongos), nil
		}
		return held, nil
	}
	switch t.Kind {
	case description.TopologyKindSingle, description.TopologyKindLoadBalanced:
		return candidates, nil
	case description.TopologyKindSharded:
		return ofKind(candidates, description.ServerKindMongos), nil
	}
	if len(candidates) > 0 {
		if err := c.checkStaleness(candidates[0].HeartbeatInterval); err != nil {
			return nil, err
		}
	}
	primary := ofKind(candidates, description.ServerKindRSPrimary)
	secondaries := c.tagged(c.fresh(primary, ofKind(candidates, description.ServerKindRSSecondary)))
	switch c.mode {
	case "primary":
		return primary, nil
	case "primaryPreferred":
		if len(primary) > 0 {
			return primary, nil
		}
		return secondaries, nil
	case "secondary":
		return secondaries, nil
	case "secondaryPreferred":
		if len(secondaries) > 0 {
			return secondaries, nil
		}
		return primary, nil
	case "nearest":
		return c.tagged(slices.Concat(primary, c.fresh(primary, ofKind(candidates, description.ServerKindRSSecondary)))), nil
	}
	return nil, mongoerr.New(mongoerr.FailedToParse, "unknown read preference mode '%s'", c.mode)
}

func ofKind(servers []description.Server, kind description.ServerKind) []description.Server {
	var out []description.Server
	for _, s := range servers {
		if s.Kind == kind {
			out = append(out, s)
		}
	}
	return out
}

// tagged returns the servers of the first tag set that any server has.
func (c choice) tagged(servers []description.Server) []description.Server {
	if len(c.tags) == 0 {
		return servers
	}
	for _, set := range c.tags {
		var out []description.Server
		for _, s := range servers {
			if s.Tags.ContainsAll(set) {
				out = append(out, s)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}
