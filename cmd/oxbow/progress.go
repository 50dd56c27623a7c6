package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// lineEvery is the time between two lines of progress where there is no terminal.
const lineEvery = 5 * time.Second

// progress shows how far long work is: a bar with an ETA on a terminal, a line now and then elsewhere.
type progress struct {
	out   io.Writer
	name  string
	total int64 // bytes; 0: unknown

	bars *mpb.Progress // nil without a terminal
	bar  *mpb.Bar

	mu      sync.Mutex
	started time.Time
	last    time.Time // of the last line
	docs    int64
}

func newProgress(out io.Writer, name string, total int64) *progress {
	p := &progress{out: out, name: name, total: total, started: time.Now()}
	p.last = p.started
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.bars = mpb.New(mpb.WithOutput(out))
		p.bar = p.bars.AddBar(total,
			mpb.PrependDecorators(decor.Name(name+" "), decor.CountersKibiByte("% .1f / % .1f")),
			mpb.AppendDecorators(decor.Any(p.documents), decor.OnComplete(decor.AverageETA(decor.ET_STYLE_GO, decor.WCSyncSpace), " done")))
	}
	return p
}

// documents is the bar's count of documents.
func (p *progress) documents(decor.Statistics) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf(" %d documents", p.docs)
}

// set tells the bytes read and the documents stored so far.
func (p *progress) set(bytes, docs int64) {
	p.mu.Lock()
	p.docs = docs
	now := time.Now()
	due := p.bar == nil && now.Sub(p.last) >= lineEvery
	if due {
		p.last = now
	}
	p.mu.Unlock()
	switch {
	case p.bar != nil:
		p.bar.SetCurrent(bytes)
	case due:
		fmt.Fprintln(p.out, p.line(bytes, docs, now))
	}
}

// line is progress in words.
func (p *progress) line(bytes, docs int64, now time.Time) string {
	spent := now.Sub(p.started)
	text := fmt.Sprintf("%s: %d documents in %s", p.name, docs, spent.Round(time.Second))
	if p.total > 0 && bytes > 0 {
		left := time.Duration(float64(spent) * float64(p.total-bytes) / float64(bytes))
		text += fmt.Sprintf(", %d %%, about %s to go", 100*bytes/p.total, left.Round(time.Second))
	}
	return text
}

// print writes a line above the bar.
func (p *progress) print(line string) {
	if p.bars != nil {
		fmt.Fprintln(p.bars, line)
		return
	}
	fmt.Fprintln(p.out, line)
}

// end finishes the bar where it stands.
func (p *progress) end() {
	if p.bars == nil {
		return
	}
	p.bar.SetTotal(-1, true)
	p.bars.Wait()
}
