package throttle

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// canaryProbe writes one small document and reads it, again and again, as an application would: where no traffic goes through this process that is how latency is
// seen. It looks at the slowest tenth, since of so few the last in a hundred is chance.
type canaryProbe struct {
	backend    backend.Backend
	collection backend.Namespace // "": there is none, and nothing is written
	settings   *Live
	traffic    *traffic
	window     *Window
	usual      usual

	mu     sync.Mutex
	failed error // the last song's
}

// canaryEvery is how often the canary sings, canarySpan the time of which its songs are looked at.
const (
	canaryEvery = 200 * time.Millisecond
	canarySpan  = 10 * time.Second
	canaryLeast = 10 // songs, of a write and a read each
)

// Name implements Probe.
func (*canaryProbe) Name() string { return Canary }

// Look implements Probe.
func (p *canaryProbe) Look(context.Context) (Verdict, error) {
	if p.collection.Collection == "" {
		return Verdict{}, Absent("no collection for it was named")
	}
	now := time.Now()
	if !p.traffic.wanted(now) {
		return Verdict{}, Absent("no job asks for its pace")
	}
	p.mu.Lock()
	failed := p.failed
	p.mu.Unlock()
	if failed != nil {
		return Verdict{}, failed
	}
	took, n := p.window.Quantile(now, canarySpan, .9)
	if n < 2*canaryLeast {
		return Verdict{State: Stop, Probe: Canary, Reason: fmt.Sprintf("the canary was written and read %d times of the %d that tell something", n/2, canaryLeast)}, nil
	}
	if p.traffic.idle(now, canarySpan) {
		p.usual.note(now, took.Seconds())
	}
	return judgeTime(now, p.settings.Load(), Canary, "the p90 of the canary", took, &p.usual), nil
}

// Run implements Runner: the canary sings while a job asks for its pace, until ctx ends, and takes its document away then.
func (p *canaryProbe) Run(ctx context.Context) {
	if p.collection.Collection == "" {
		return
	}
	host, _ := os.Hostname() // a canary without a name sings as well
	id := host + ":" + strconv.Itoa(os.Getpid())
	ticker := time.NewTicker(canaryEvery)
	defer ticker.Stop()
	sang := false
	for ctx.Err() == nil {
		if p.traffic.wanted(time.Now()) {
			sang = true
			err := p.sing(ctx, id)
			p.mu.Lock()
			p.failed = err
			p.mu.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
	if !sang {
		return
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	p.backend.Run(last, &backend.Request{Body: p.removal(id)}) // a document left behind is overwritten by the next, or is in nobody's way
}

// sing writes and reads once.
func (p *canaryProbe) sing(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, body := range [...]bson.Document{p.write(id), p.read(id)} {
		began := time.Now()
		err := ran(p.backend.Run(ctx, &backend.Request{Body: body}))
		now := time.Now()
		p.window.Note(now, now.Sub(began))
		if err != nil {
			return err
		}
	}
	return nil
}

// ran is why a command of a canary failed, or nil.
func ran(reply bson.Document, err error) error {
	if err != nil {
		return err
	}
	w, err := backend.ParseWriteReply(reply) // of a find it finds no more than its ok
	if err != nil {
		return err
	}
	return w.Err()
}

// byID is the filter of the canary's document.
func byID(id string) bson.Document {
	return bsoncore.NewDocumentBuilder().AppendString("_id", id).Build()
}

func (p *canaryProbe) write(id string) bson.Document {
	update := bsoncore.NewDocumentBuilder().AppendDocument("q", byID(id)).
		AppendDocument("u", bsoncore.NewDocumentBuilder().AppendDocument("$set", bsoncore.NewDocumentBuilder().AppendDateTime("at", time.Now().UnixMilli()).Build()).Build()).
		AppendBoolean("upsert", true).Build()
	return p.command("update", func(dst []byte) []byte {
		return bsoncore.AppendArrayElement(dst, "updates", bsoncore.NewArrayBuilder().AppendDocument(update).Build())
	})
}

func (p *canaryProbe) read(id string) bson.Document {
	return p.command("find", func(dst []byte) []byte {
		return bsoncore.AppendInt32Element(bsoncore.AppendDocumentElement(dst, "filter", byID(id)), "limit", 1)
	})
}

func (p *canaryProbe) removal(id string) bson.Document {
	one := bsoncore.NewDocumentBuilder().AppendDocument("q", byID(id)).AppendInt32("limit", 1).Build()
	return p.command("delete", func(dst []byte) []byte {
		return bsoncore.AppendArrayElement(dst, "deletes", bsoncore.NewArrayBuilder().AppendDocument(one).Build())
	})
}

func (p *canaryProbe) command(name string, rest func(dst []byte) []byte) bson.Document {
	return backend.Command(p.collection.Database, func(dst []byte) []byte {
		return rest(bsoncore.AppendStringElement(dst, name, p.collection.Collection))
	})
}
