package throttle

import (
	"context"
	"fmt"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/deployment"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// oplogProbe looks at what is left of the oplog's window when the member that is furthest behind, its delay included, has what it needs. A member that is further
// behind than the window has to be synced anew. An oplog that has not reached its size yet loses nothing.
type oplogProbe struct {
	*view
	filling map[string]*sample[bool] // by host
}

func newOplogProbe(v *view) *oplogProbe {
	return &oplogProbe{view: v, filling: map[string]*sample[bool]{}}
}

// Name implements Probe.
func (*oplogProbe) Name() string { return Oplog }

// Look implements Probe.
func (p *oplogProbe) Look(ctx context.Context) (Verdict, error) {
	sets, err := p.readSets(ctx)
	if err != nil {
		return Verdict{}, err
	}
	loads, err := p.readLoads(ctx)
	if err != nil {
		return Verdict{}, err
	}
	out, reported := going, false
	for i := range sets {
		l := loadOf(loads, sets[i].Primary)
		if l == nil || l.first == 0 {
			continue
		}
		reported = true
		if p.isFilling(ctx, l.host) {
			continue
		}
		window := time.Duration(l.last-l.first) * time.Second
		behind, host := p.furthest(&sets[i])
		what := fmt.Sprintf("what is left of the oplog's window of %v on %s", window, l.host)
		if behind > 0 {
			what += fmt.Sprintf(", with %s %v behind,", host, round(behind))
		}
		out = worst(out, p.judge(Oplog, what, (window-behind).Seconds()))
	}
	if !reported {
		return Verdict{}, Absent("not reported")
	}
	return out, nil
}

func loadOf(loads []load, host string) *load {
	for i := range loads {
		if loads[i].host == host {
			return &loads[i]
		}
	}
	return nil
}

// furthest is how far the last member with data is behind, its delay included.
func (p *oplogProbe) furthest(s *deployment.Set) (behind time.Duration, host string) {
	latest := latestWrite(s)
	for i := range s.Members {
		m := &s.Members[i]
		if !m.HoldsData() || m.Applied.IsZero() || p.settings.Load().Ignores(m.Host) {
			continue
		}
		if b := latest.Sub(m.Applied); b > behind {
			behind, host = b, m.Host
		}
	}
	return behind, host
}

// fillingAge is how long it is believed whether an oplog has reached its size.
const fillingAge = 10 * time.Second

var oplogStats = backend.Command("local", func(dst []byte) []byte { return bsoncore.AppendStringElement(dst, "collStats", "oplog.rs") })

// isFilling reports whether a primary's oplog has room left, a tenth of its size or more. One that doesn't tell is taken for full.
func (p *oplogProbe) isFilling(ctx context.Context, host string) bool {
	s := p.filling[host]
	if s == nil {
		s = newSample[bool]()
		p.filling[host] = s
	}
	filling, err := s.get(ctx, fillingAge, func(ctx context.Context) (bool, error) {
		b, err := p.deployment.On(ctx, host)
		if err != nil {
			return false, err
		}
		reply, err := backend.Ask(ctx, b, oplogStats)
		if err != nil {
			return false, err
		}
		size, has := figure(reply, "size")
		most, hasMost := figure(reply, "maxSize")
		return has && hasMost && size < .9*most, nil
	})
	return err == nil && filling
}
