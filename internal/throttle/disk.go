package throttle

import (
	"context"
	"fmt"
	"strings"

	"oxbow/internal/backend"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// diskProbe looks at what is free of the file systems that servers store on: fsTotalSize and fsUsedSize of dbStats. Little space raises the pace of jobs, which
// give some back, up to twice; almost none stops those that write first and give back later.
type diskProbe struct {
	*view
	database string // whose dbStats is asked for: it needs the right to
}

// Name implements Probe.
func (diskProbe) Name() string { return Disk }

// Look implements Probe.
func (p diskProbe) Look(ctx context.Context) (Verdict, error) {
	sets, err := p.view.sets.get(ctx, fresh, p.deployment.Sets)
	if err != nil {
		return Verdict{}, err
	}
	disks, err := ofServers(ctx, p.view, sets, p.readSpace)
	if err != nil {
		return Verdict{}, err
	}
	out, reported := going, false
	for _, d := range disks {
		if !d.reported {
			continue
		}
		reported = true
		out = fuller(out, p.judgeSpace(d))
	}
	if !reported {
		return Verdict{}, Absent("not reported")
	}
	return out, nil
}

// judgeSpace hurries where others slow: the less space the more, up to twice the pace.
func (p diskProbe) judgeSpace(d space) Verdict {
	v := p.judge(Disk, "the free share of the disk of "+d.host, d.free)
	v.Reason = strings.Replace(v.Reason, "slow from", "hurry from", 1)
	if v.State == Slow {
		v.State, v.Share = Go, 2-v.Share
	}
	return v
}

// fuller returns the verdict on the fuller of two disks.
func fuller(a, b Verdict) Verdict {
	if b.State > a.State || b.State == a.State && b.Share > a.Share {
		return b
	}
	return a
}

// space is what is free of a server's disk.
type space struct {
	host     string
	free     float64 // share
	reported bool
}

// readSpace asks one server.
func (p diskProbe) readSpace(ctx context.Context, b backend.Backend, host string) (space, error) {
	reply, err := backend.Ask(ctx, b, backend.Command(p.database, func(dst []byte) []byte {
		return bsoncore.AppendInt32Element(dst, "dbStats", 1)
	}))
	if err != nil {
		return space{}, fmt.Errorf("%s: %w", host, err)
	}
	used, has := figure(reply, "fsUsedSize")
	total, hasTotal := figure(reply, "fsTotalSize")
	if !has || !hasTotal || total <= 0 {
		return space{}, nil
	}
	return space{host, (total - used) / total, true}, nil
}
