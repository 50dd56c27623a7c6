package exec

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"oxbow/internal/backend"
	"oxbow/internal/bson"
	"oxbow/internal/mongoerr"
	"oxbow/internal/plan"

	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// Options are what a write command carries to every backend.
type Options struct {
	WriteConcern bson.Document
	Comment      bson.Value
	Let          bson.Document
	Retry        *Retry
}

// Insert runs the plan of an insert.
func (e *Executor) Insert(ctx context.Context, p *plan.Insert, o Options) (*backend.WriteReply, error) {
	w := writing{exec: e, name: "insert", sequence: "documents", collection: p.Namespace, options: o, ordered: p.Ordered, byPartition: p.Ordered && p.ByPartition}
	if len(p.Runs) == 1 {
		return w.alone(ctx, &p.Runs[0].Run, p.Errors)
	}
	steps := make([]plan.Step, len(p.Runs))
	for i := range p.Runs {
		steps[i] = &p.Runs[i]
	}
	several := w
	return several.run(ctx, steps, p.Errors)
}

// Write runs the plan of an update or delete.
func (e *Executor) Write(ctx context.Context, p *plan.Write, o Options) (*backend.WriteReply, error) {
	w := writing{exec: e, name: p.Name, sequence: p.Name + "s", collection: p.Namespace, options: o, ordered: p.Ordered, byPartition: p.Ordered && p.ByPartition}
	w.options.Let = p.Let
	if len(p.Steps) == 1 {
		if t, ok := p.Steps[0].(*plan.Together); ok {
			return w.alone(ctx, &t.Run, p.Errors)
		}
	}
	several := w
	return several.run(ctx, p.Steps, p.Errors)
}

// writing is one write command being run.
type writing struct {
	exec       *Executor
	name       string
	sequence   string // the name of its statements
	collection string // the application's namespace
	options    Options
	ordered    bool

	byPartition bool // ordered, within each partition only
}

// outcome is what a step did.
type outcome struct {
	reply backend.WriteReply
	err   error // the step got no reply, or one with ok: 0
}

// alone is run for a write that is one run, as most are. Unlike several steps it costs no goroutine, and so no allocation for what goroutines share.
func (w *writing) alone(ctx context.Context, r *plan.Run, refused []backend.WriteError) (*backend.WriteReply, error) {
	o := w.together(ctx, r)
	return w.whole(&o.reply, o.err, refused)
}

// run runs the steps: one after the other until the first error in an ordered write, at once otherwise, and as far as partitions differ where the order
// holds within each only. refused are the statements that the
// plan itself refused. The error is one of the command as a whole: a backend that gave no reply.
func (w *writing) run(ctx context.Context, steps []plan.Step, refused []backend.WriteError) (*backend.WriteReply, error) {
	var outcomes []outcome
	switch {
	case w.byPartition:
		outcomes = w.inPhases(ctx, steps)
	case w.ordered || len(steps) == 1:
		outcomes = w.inOrder(ctx, steps)
	default:
		outcomes = w.atOnce(ctx, steps)
	}
	total := &backend.WriteReply{}
	var failure error
	for i := range outcomes {
		o := &outcomes[i]
		total.Add(&o.reply)
		if failure == nil {
			failure = o.err
		}
	}
	return w.whole(total, failure, refused)
}

// whole completes the reply of all steps, or gives the first error of one.
func (w *writing) whole(total *backend.WriteReply, failure error, refused []backend.WriteError) (*backend.WriteReply, error) {
	if failure != nil {
		met := concern{total.ConcernError, total.Labels}
		return nil, met.inError(failure)
	}
	if !w.ordered || w.byPartition || len(total.Errors) == 0 {
		total.Errors = append(total.Errors, refused...)
	}
	slices.SortFunc(total.Errors, func(a, b backend.WriteError) int { return cmp.Compare(a.Index, b.Index) })
	slices.SortFunc(total.Upserted, func(a, b backend.Upserted) int { return cmp.Compare(a.Index, b.Index) })
	total.ShortenErrors()
	return total, nil
}

// addDone adds a part's reply to the total, its statements' errors aside. One write concern error stands for all, with the labels of all.
func addDone(total, part *backend.WriteReply) {
	total.N += part.N
	total.Modified += part.Modified
	total.Upserted = append(total.Upserted, part.Upserted...)
	total.RetriedStmts = append(total.RetriedStmts, part.RetriedStmts...)
	c := concern{total.ConcernError, total.Labels}
	c.note(part)
	total.ConcernError, total.Labels = c.err, c.labels
}

func (w *writing) inOrder(ctx context.Context, steps []plan.Step) []outcome {
	var outcomes []outcome
	for _, s := range steps {
		o := w.step(ctx, s)
		outcomes = append(outcomes, o)
		if o.failed() {
			break
		}
	}
	return outcomes
}

// inPhases runs the steps that concern different partitions at once, and what meets one of these again behind them. It stops at the phase with an error.
func (w *writing) inPhases(ctx context.Context, steps []plan.Step) []outcome {
	var outcomes []outcome
	for len(steps) > 0 {
		n := plan.AtOnce(steps)
		phase := w.atOnce(ctx, steps[:n])
		outcomes, steps = append(outcomes, phase...), steps[n:]
		if slices.ContainsFunc(phase, outcome.failed) {
			if !slices.ContainsFunc(phase, outcome.failedForGood) {
				outcomes = append(outcomes, untried(steps))
			}
			break
		}
	}
	return outcomes
}

// failed reports whether a step had an error.
func (o outcome) failed() bool { return o.err != nil || len(o.reply.Errors) > 0 }

// failedForGood reports whether a step had an error that planning it again does not mend.
func (o outcome) failedForGood() bool {
	return o.err != nil || slices.ContainsFunc(o.reply.Errors, func(e backend.WriteError) bool { return e.Err.Code != mongoerr.StaleConfig })
}

// untried is the outcome of steps that wait for others which have to be planned again, and so have they.
func untried(steps []plan.Step) (o outcome) {
	for _, s := range steps {
		switch s := s.(type) {
		case *plan.Together:
			o.again(s.Index)
		case plan.Each:
			o.again([]int32{s.Index})
		case plan.First:
			o.again([]int32{s.Index})
		}
	}
	return o
}

// again gives statements the error of such as have to be planned again.
func (o *outcome) again(index []int32) {
	for _, i := range index {
		o.reply.Errors = append(o.reply.Errors, backend.WriteError{Index: i, Err: errStale})
	}
}

// errStale is the error of statements that were not tried, since others before them have to be planned again.
var errStale = mongoerr.New(mongoerr.StaleConfig, "a partition was dropped while the write was on its way")

func (w *writing) atOnce(ctx context.Context, steps []plan.Step) []outcome {
	outcomes := make([]outcome, len(steps))
	_ = w.exec.spread(ctx, w.collection, len(steps), func(ctx context.Context, i int) error {
		outcomes[i] = w.step(ctx, steps[i])
		return nil
	})
	return outcomes
}

func (w *writing) step(ctx context.Context, s plan.Step) outcome {
	switch s := s.(type) {
	case *plan.Together:
		return w.together(ctx, &s.Run)
	case plan.Each:
		return w.each(ctx, &s)
	case plan.First:
		return w.first(ctx, &s)
	}
	return outcome{err: mongoerr.New(mongoerr.InternalError, "no way to run the step %s", s)}
}

// together sends a run and gives its statements their numbers in the client's command.
func (w *writing) together(ctx context.Context, r *plan.Run) outcome {
	reply, err := w.send(ctx, r)
	if mongoerr.Is(err, mongoerr.StaleConfig) {
		return w.stale(r, err)
	}
	if err != nil {
		return outcome{err: err}
	}
	parsed, err := backend.ParseWriteReply(reply)
	if err != nil {
		return outcome{err: w.refused(r, err)}
	}
	if e := w.passing(parsed); e != nil {
		concern := backend.WriteReply{ConcernError: parsed.ConcernError, Labels: parsed.Labels}
		return outcome{reply: concern, err: w.refused(r, e)}
	}
	stale := len(r.Index) // the first statement that met a partition which is gone
	for i := range parsed.Errors {
		e := &parsed.Errors[i]
		if !r.Has(e.Index) {
			return outcome{err: strayIndex(r.Backend, e.Index)}
		}
		if e.Err.Code == mongoerr.StaleConfig {
			stale = min(stale, int(e.Index))
		}
		e.Err = backend.RenameError(e.Err, r.Namespace(int(e.Index)), w.collection)
		e.Index = r.Index[e.Index]
	}
	for i := range parsed.Upserted {
		u := &parsed.Upserted[i]
		if !r.Has(u.Index) {
			return outcome{err: strayIndex(r.Backend, u.Index)}
		}
		u.Index = r.Index[u.Index]
	}
	o := outcome{reply: *parsed}
	if w.byPartition && stale < len(r.Index) {
		o.again(r.Index[stale+1:]) // the backend has stopped there
	}
	return o
}

// passing returns the error of a statement of a retryable write after which the driver is to send the command again: a server that steps down in the
// middle of a batch tells so with a statement. Drivers look for it only in the command's own error, and the statements done are known again.
func (w *writing) passing(reply *backend.WriteReply) *mongoerr.Error {
	if w.options.Retry == nil {
		return nil
	}
	for _, e := range reply.Errors {
		if e.Err.Code.Retryable() {
			return e.Err
		}
	}
	return nil
}

// stale is the outcome of a run that was not sent because its partition was dropped after it had been planned: all of its statements can be planned again.
func (w *writing) stale(r *plan.Run, err error) outcome {
	index := r.Index
	if w.ordered && !w.byPartition {
		index = index[:1]
	}
	var o outcome
	for _, i := range index {
		o.reply.Errors = append(o.reply.Errors, backend.WriteError{Index: i, Err: mongoerr.From(err)})
	}
	return o
}

// send sends a run and returns the reply, ok: 1 or not. A run has several namespaces only on the engine of this process, which no other gateway reaches.
func (w *writing) send(ctx context.Context, r *plan.Run) (bson.Document, error) {
	t := plan.Target{Backend: r.Backend, Namespace: r.Namespaces[0], Logical: w.collection}
	sending, limit, err := w.exec.begin(ctx, t, makesCollection(w.name, r.Statements))
	if err != nil {
		return nil, err
	}
	answered := false
	defer func() { sending.End(answered) }()
	out := outgoings.Get().(*outgoing)
	defer out.giveBack()
	reply, err := w.exec.Run(ctx, r.Backend, w.request(out, r, limit))
	answered = err == nil
	return reply, err
}

// outgoing is a run as a request, whose memory serves one after the other: a backend keeps nothing of a request when it has answered.
type outgoing struct {
	backend.Request
	sequence [1]backend.Sequence
	body     []byte // room for it
}

var outgoings = sync.Pool{New: func() any { return new(outgoing) }}

// keptBody is the largest body whose room is kept, in bytes.
const keptBody = 4 << 10

func (o *outgoing) giveBack() {
	body := o.body
	if cap(body) > keptBody {
		body = nil
	}
	*o = outgoing{body: body[:0]}
	outgoings.Put(o)
}

// refused is a backend's error about a run as a whole: it may name any of the run's partitions.
func (w *writing) refused(r *plan.Run, err error) error {
	known := mongoerr.From(err)
	for _, ns := range r.Namespaces {
		known = backend.RenameError(known, ns, w.collection)
	}
	return w.exec.onBackend(r.Backend, known)
}

func strayIndex(name string, index int32) error {
	return mongoerr.New(mongoerr.InternalError, "backend %s answered for statement %d, which it was not sent", name, index)
}

// request makes out a run as a command, with a limit of its time where there is one.
func (w *writing) request(out *outgoing, r *plan.Run, limit time.Duration) *backend.Request {
	first := r.Namespaces[0]
	at, body := bsoncore.AppendDocumentStart(out.body[:0])
	body = bsoncore.AppendStringElement(body, w.name, first.Collection)
	body = bsoncore.AppendBooleanElement(body, "ordered", w.ordered)
	if w.options.Let != nil {
		body = bsoncore.AppendDocumentElement(body, "let", w.options.Let)
	}
	body = w.options.append(body)
	body = appendLimit(body, limit)
	body = w.options.Retry.append(body, w.exec.Abilities(r.Backend), scopeOf(r.Pinned, first, w.collection), r.Index)
	body = bsoncore.AppendStringElement(body, "$db", first.Database)
	body, _ = bsoncore.AppendDocumentEnd(body, at)
	out.body, out.sequence = body, [1]backend.Sequence{{Name: w.sequence, Documents: r.Statements}}
	req := &out.Request
	req.Body, req.Sequences = body, out.sequence[:]
	if len(r.Namespaces) > 1 {
		req.Targets = r.Namespaces
	}
	req.Existing = w.exec.Abilities(r.Backend).OneBatch // a partition is made before it is written to: one that is missing has been dropped
	return req
}

// append appends what every part of the write carries.
func (o *Options) append(body []byte) []byte {
	if o.WriteConcern != nil {
		body = bsoncore.AppendDocumentElement(body, "writeConcern", o.WriteConcern)
	}
	if o.Comment.Type != 0 {
		body = bsoncore.AppendValueElement(body, "comment", o.Comment)
	}
	return body
}

// one runs one statement on one target.
func (w *writing) one(ctx context.Context, t plan.Target, index int32, statement bson.Document, pinned bool) outcome {
	return w.together(ctx, &plan.Run{
		Backend: t.Backend, Namespaces: []backend.Namespace{t.Namespace},
		Index: []int32{index}, Statements: []bson.Document{statement}, Pinned: pinned,
	})
}

// each runs a statement for all documents on all its targets.
func (w *writing) each(ctx context.Context, s *plan.Each) outcome {
	if refused, err := w.guarded(ctx, s.Guard); err != nil || refused != nil {
		return failed(refused, err).at(s.Index)
	}
	outcomes := make([]outcome, len(s.Routed.Targets))
	_ = w.exec.spread(ctx, w.collection, len(outcomes), func(ctx context.Context, i int) error {
		outcomes[i] = w.one(ctx, s.Routed.Targets[i], s.Index, s.Statement, true)
		return nil
	})
	var total outcome
	for i := range outcomes {
		total.add(outcomes[i])
	}
	if total.err == nil && total.reply.N == 0 && len(total.reply.Errors) == 0 {
		total.add(w.upsert(ctx, s.Upsert, s.Index, true))
	}
	return total
}

// add adds the outcome of a further part of one statement. A statement has one error, as from one server: the first.
func (o *outcome) add(part outcome) {
	addDone(&o.reply, &part.reply)
	if len(o.reply.Errors) == 0 {
		o.reply.Errors = part.reply.Errors
	}
	if o.err == nil {
		o.err = part.err
	}
}

// first runs a statement for one document on one target after the other, until one had a match.
func (w *writing) first(ctx context.Context, s *plan.First) outcome {
	if earlier, found := w.recordedFirst(ctx, s); found {
		return earlier
	}
	var total outcome
	for _, t := range s.Routed.Targets {
		total.add(w.one(ctx, t, s.Index, s.Statement, s.Pinned))
		if total.err != nil || total.reply.N > 0 || len(total.reply.Errors) > 0 {
			return total
		}
	}
	if refused, err := w.guarded(ctx, s.Guard); err != nil || refused != nil {
		total.add(failed(refused, err).at(s.Index))
		return total
	}
	total.add(w.upsert(ctx, s.Upsert, s.Index, s.Pinned))
	return total
}

// upsert inserts where nothing matched.
func (w *writing) upsert(ctx context.Context, u *plan.Upsert, index int32, pinned bool) outcome {
	switch {
	case u == nil:
		return outcome{}
	case u.Target == nil:
		return failed(u.Err, nil).at(index)
	}
	return w.one(ctx, *u.Target, index, u.Statement, pinned)
}

// guarded reports the error of a statement whose documents would have to move.
func (w *writing) guarded(ctx context.Context, g *plan.Guard) (*mongoerr.Error, error) {
	if g == nil {
		return nil, nil
	}
	found, err := w.exec.matches(ctx, g)
	if found {
		return g.Err, err
	}
	return nil, err
}

// failed is the outcome of a statement that was refused, or of a failure to find out.
func failed(refused *mongoerr.Error, err error) outcome {
	if err != nil {
		return outcome{err: err}
	}
	return outcome{reply: backend.WriteReply{Errors: []backend.WriteError{{Err: refused}}}}
}

// at gives the errors of a one-statement outcome their index.
func (o outcome) at(index int32) outcome {
	for i := range o.reply.Errors {
		o.reply.Errors[i].Index = index
	}
	return o
}

// matches reports whether any document of a guard's other partitions matches.
func (e *Executor) matches(ctx context.Context, g *plan.Guard) (bool, error) {
	filter := bsoncore.AppendInt64Element(nil, "limit", 1)
	if g.Filter != nil {
		filter = bsoncore.AppendDocumentElement(filter, "query", g.Filter)
	}
	found := make([]bool, len(g.Elsewhere))
	err := e.each(ctx, g.Elsewhere, plan.Command{Name: "count", Rest: filter}, func(i int, reply bson.Document) error {
		n, _ := bson.Get(reply, "n")
		count, _ := n.AsInt64OK()
		found[i] = count > 0
		return nil
	})
	return slices.Contains(found, true), err
}
