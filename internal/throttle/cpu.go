package throttle

import (
	"context"
	"time"

	"oxbow/internal/backend"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// cpuProbe looks at the share of a machine's processors that the server's process has used since the look before: extra_info of serverStatus, by numCores of
// hostInfo.
type cpuProbe struct {
	*view
	before map[string]load    // by host
	cores  map[string]float64 // by host; 0: not reported
	busy   map[string]float64 // the share that was measured last, by host
}

func newCPUProbe(v *view) *cpuProbe {
	return &cpuProbe{view: v, before: map[string]load{}, cores: map[string]float64{}, busy: map[string]float64{}}
}

// Name implements Probe.
func (*cpuProbe) Name() string { return CPU }

// cpuSpan is the shortest time over which processors are measured.
const cpuSpan = time.Second

// Look implements Probe.
func (p *cpuProbe) Look(ctx context.Context) (Verdict, error) {
	loads, err := p.readLoads(ctx)
	if err != nil {
		return Verdict{}, err
	}
	for i := range loads {
		if loads[i].cpu >= 0 {
			p.measure(ctx, &loads[i])
		}
	}
	return p.over(ctx, CPU, "the processors' use", func(l *load) float64 {
		switch busy, measured := p.busy[l.host]; {
		case l.cpu < 0 || p.cores[l.host] == 0:
			return -1
		case measured:
			return busy
		}
		return 0
	})
}

// measure compares a load with the one before.
func (p *cpuProbe) measure(ctx context.Context, l *load) {
	cores, known := p.cores[l.host]
	if !known {
		var err error
		if cores, err = p.readCores(ctx, l.host); err == nil {
			p.cores[l.host] = cores
		}
	}
	before, has := p.before[l.host]
	span := l.at.Sub(before.at)
	if has && span < cpuSpan {
		return
	}
	p.before[l.host] = *l
	if has && cores > 0 && l.cpu >= before.cpu {
		p.busy[l.host] = (l.cpu - before.cpu) / span.Seconds() / cores
	}
}

var hostInfo = backend.Command("admin", func(dst []byte) []byte { return bsoncore.AppendInt32Element(dst, "hostInfo", 1) })

// readCores returns the number of a machine's cores, 0 where the server does not tell. The error is that of a server that did not answer.
func (p *cpuProbe) readCores(ctx context.Context, host string) (float64, error) {
	b := p.deployment.Whole()
	if host != p.deployment.Name() {
		var err error
		if b, err = p.deployment.On(ctx, host); err != nil {
			return 0, err
		}
	}
	reply, err := b.Run(ctx, &backend.Request{Body: hostInfo})
	if err != nil {
		return 0, err
	}
	cores, _ := figure(reply, "system", "numCores")
	return cores, nil
}
