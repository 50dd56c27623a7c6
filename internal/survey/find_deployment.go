package survey

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"oxbow/internal/deployment"
	"oxbow/internal/operation"
	"oxbow/internal/query"
	"oxbow/internal/terminal"
)

func (f *finder) members() {
	for _, m := range f.s.Members {
		switch {
		case m.state == deployment.Unreachable, m.state == deployment.Other:
			f.add(true, "member-down", m.Host, "A member does not serve",
				fmt.Sprintf("%s of %s is %s: %s", m.Host, m.Set, m.State, m.Why), "rs.status().members.filter(m => m.name == "+quoted(m.Host)+")")
		case m.BehindMillis.Reported && seconds(float64(m.BehindMillis.Value)/1000) > f.t.Behind:
			f.add(true, "member-behind", m.Host, "A secondary is behind",
				fmt.Sprintf("%s of %s is %s behind its primary, beside its delay of %s", m.Host, m.Set, timeText(time.Duration(m.BehindMillis.Value)*time.Millisecond), timeText(seconds(m.DelaySeconds))),
				"oxbow ops --uri "+f.uri, "rs.printSecondaryReplicationInfo()")
		}
	}
}

// majorities finds replica sets in which a majority can't confirm writes any more when one member that has data fails, since an arbiter votes and confirms
// nothing (https://www.mongodb.com/docs/manual/core/replica-set-arbiter/#concerns-with-multiple-arbiters).
func (f *finder) majorities() {
	type set struct{ votes, holding, arbiters int }
	sets := map[string]*set{}
	var names []string
	for _, m := range f.s.Members {
		if m.Set == "" || m.Votes == 0 {
			continue
		}
		s := sets[m.Set]
		if s == nil {
			s = &set{}
			sets[m.Set] = s
			names = append(names, m.Set)
		}
		s.votes++
		if m.state == deployment.Arbiter {
			s.arbiters++
		} else {
			s.holding++
		}
	}
	for _, name := range names {
		s := sets[name]
		if s.arbiters == 0 || s.holding-1 >= s.votes/2+1 {
			continue
		}
		f.add(false, "fragile-majority", name, "One failure leaves no majority that confirms writes",
			fmt.Sprintf("%s has %d votes, %d of them of members with data; w: majority needs %d of those, and one failure leaves %d", name, s.votes, s.holding, s.votes/2+1, s.holding-1),
			`rs.add({host: "HOST:PORT"})`)
	}
}

// oplogs finds logs that do not cover what they must: a delayed member's delay, and on top of it the longer of a resync and a backup, at the peak rate.
func (f *finder) oplogs() {
	for _, o := range f.s.Oplogs {
		if !o.SizeBytes.Reported || !o.PeakHourBytes.Reported || o.PeakHourBytes.Value <= 0 {
			continue
		}
		var delay time.Duration
		for _, m := range f.s.Members {
			if m.Set == o.Set {
				delay = max(delay, seconds(m.DelaySeconds))
			}
		}
		resync := seconds(float64(f.dataOf(o.Set)) / float64(f.t.ResyncBytes))
		needs := delay + max(resync, f.t.Backup)
		covers := seconds(float64(o.SizeBytes.Value) / float64(o.PeakHourBytes.Value) * 3600)
		if covers >= needs {
			continue
		}
		megabytes := max(990, int64(math.Ceil(1.2*needs.Hours()*float64(o.PeakHourBytes.Value)/(1<<20))))
		how := "told from a sample of its entries"
		if o.Sampled == 0 {
			how = "an average, since its entries could not be sampled"
		}
		f.add(true, "oplog-short", o.Set, "The oplog is too short",
			fmt.Sprintf("%s has %s, which is %s at %s in the busiest hour (%s); it has to cover %s: a delay of %s, and the longer of a resync in %s, at an assumed %s/s, and a backup in %s",
				o.Set, sizeText(o.SizeBytes.Value), timeText(covers), sizeText(o.PeakHourBytes.Value), how, timeText(needs), timeText(delay), timeText(resync), sizeText(f.t.ResyncBytes), timeText(f.t.Backup)),
			fmt.Sprintf("db.adminCommand({replSetResizeOplog: 1, size: Double(%d)})   // MiB, on each member of %s that has data", megabytes, o.Set))
	}
}

// dataOf is the data of a set that a new member would copy.
func (f *finder) dataOf(set string) int64 {
	for _, s := range f.s.Servers {
		if s.Set == set {
			return s.DataBytes
		}
	}
	return 0
}

func (f *finder) disks() {
	growth := f.bytesPerDay()
	for _, s := range f.s.Servers {
		if !s.DiskTotal.Reported || !s.DiskUsed.Reported || s.DiskTotal.Value <= 0 {
			continue
		}
		free := s.DiskTotal.Value - s.DiskUsed.Value
		share := float64(s.DiskUsed.Value) / float64(s.DiskTotal.Value)
		days := math.Inf(1)
		if growth > 0 {
			days = float64(free) / growth
		}
		if share < f.t.DiskShare && days > f.t.DiskDays {
			continue
		}
		evidence := fmt.Sprintf("%s has %s free of %s (%.0f %% in use)", s.Host, sizeText(free), sizeText(s.DiskTotal.Value), 100*share)
		if growth > 0 {
			evidence += fmt.Sprintf("; collections grow by about %s a day, so it is full in %.1f days", sizeText(int64(growth)), days)
		}
		f.add(true, "disk-filling", s.Host, "A disk fills", evidence, f.makesRoom())
	}
}

// bytesPerDay is about how much is written to disk in a day, by the documents of the last day, where a sample tells it.
func (f *finder) bytesPerDay() float64 {
	total := 0.0
	for i := range f.s.Collections {
		total += grows(&f.s.Collections[i])
	}
	return total
}

// grows is about how many bytes a collection takes more a day.
func grows(c *Collection) float64 {
	if !c.LastDay.Reported || c.Documents.Value == 0 {
		return 0
	}
	each := float64(c.StorageBytes.Value-c.ReusableBytes.Value+c.IndexBytes.Value) / float64(c.Documents.Value)
	return max(0, each*float64(c.LastDay.Value))
}

// makesRoom is the command that looks how the old documents go of the collection that grows most.
func (f *finder) makesRoom() string {
	if c := f.fastest(); c.Namespace != "" {
		return f.purge(c, "30d") + "   // or whatever age may go"
	}
	return "db.adminCommand({listDatabases: 1})   // no collection was looked at"
}

// fastest is the collection that grows most, else the largest.
func (f *finder) fastest() *Collection {
	return slices.MaxFunc(append([]*Collection{{}}, pointers(f.s.Collections)...), func(a, b *Collection) int {
		return cmp.Or(cmp.Compare(grows(a), grows(b)), cmp.Compare(a.StorageBytes.Value, b.StorageBytes.Value))
	})
}

func pointers(list []Collection) []*Collection {
	all := make([]*Collection, len(list))
	for i := range list {
		all[i] = &list[i]
	}
	return all
}

func (f *finder) files() {
	files := f.s.Count + f.s.IndexCount
	// Each collection has an index on _id at least, also those that were not looked at.
	if least := 2 * f.s.Count; files < least {
		files = least
	}
	if f.s.Count <= f.t.Files {
		return
	}
	mend := []string{}
	for i := range f.s.Collections {
		if c := &f.s.Collections[i]; c.Documents.Reported && c.Documents.Value == 0 && len(mend) < 3 {
			database, name, _ := strings.Cut(c.Namespace, ".")
			mend = append(mend, "db.getSiblingDB("+quoted(database)+").runCommand({drop: "+quoted(name)+"})   // empty")
		}
	}
	if len(mend) == 0 {
		mend = append(mend, "oxbow observe --uri "+f.uri+" --json   // lists them with their sizes: drop or merge what can be")
	}
	f.add(false, "many-files", "the deployment", "There are very many files",
		fmt.Sprintf("%s collections and at least %s files, of which a server keeps each open that is in use; more than %s collections are slow to start and to check", numberText(int64(f.s.Count)), numberText(int64(files)),
			numberText(int64(f.t.Files))), mend...)
}

// running finds operations that read a large collection as a whole right now.
func (f *finder) running() {
	for i := range f.s.Operations {
		o := &f.s.Operations[i]
		documents := f.documents(o.Namespace)
		if !o.Scans() || o.Age < f.t.Running || documents <= f.t.ScannedFrom || o.AllowsScan() {
			continue
		}
		mend := []string{fmt.Sprintf("oxbow ops kill --uri %s --opid %s --member %s", f.uri, terminal.Argument(o.Number()), terminal.Argument(o.Member))}
		f.add(true, "scan-running", o.Namespace, "An operation reads a whole collection",
			fmt.Sprintf("%s %s runs on %s for %s without an index (%s), over %s documents", o.Kind, o.Shape, o.Member, timeText(o.Age), o.Plan, numberText(documents)),
			append(mend, wanted(o)...)...)
	}
}

func (f *finder) documents(namespace string) int64 {
	for i := range f.s.Collections {
		if f.s.Collections[i].Namespace == namespace {
			return f.s.Collections[i].Documents.Value
		}
	}
	return 0
}

// wanted is the command that makes the index which an operation wants.
func wanted(o *operation.Operation) []string {
	keys := query.WantedIndexes(o.Filter, o.Sort)
	if keys == nil {
		return nil
	}
	database, collection := o.Collection()
	return []string{query.CreateIndexes(database, collection, keys)}
}

// scans finds whole scans that were not seen to run: in profiles, and where there are none in the servers' counters.
func (f *finder) scans() {
	named := false
	for i := range f.s.Profiled {
		p := &f.s.Profiled[i]
		documents := f.documents(p.Namespace)
		if documents <= f.t.ScannedFrom {
			continue
		}
		named = true
		f.add(false, "scans", p.Namespace, "Commands read a whole collection",
			fmt.Sprintf("the profiler has %d times %s %s without an index (COLLSCAN), %s in all, over %s documents", p.Count, p.Kind, p.Shape, timeText(time.Duration(p.Millis)*time.Millisecond), numberText(documents)),
			wanted(&p.operation)...)
	}
	for _, s := range f.s.Servers {
		if named || !s.Scans.Reported || !s.ScansAfter.Reported || f.s.Between <= 0 {
			continue
		}
		rate := float64(s.ScansAfter.Value-s.Scans.Value) / f.s.Between.Seconds()
		if rate < f.t.ScansPerSecond || !f.hasLarge() {
			continue
		}
		f.add(false, "scans", s.Host, "Commands read whole collections",
			fmt.Sprintf("%s counts %.1f scans of whole collections a second (metrics.queryExecutor.collectionScans); which ones it does not tell: the profiler does", s.Host, rate),
			"db.getSiblingDB(DATABASE).setProfilingLevel(1, {slowms: 50, sampleRate: 0.1})   // then oxbow observe again")
	}
}

// hasLarge reports whether there is a collection of which a scan matters.
func (f *finder) hasLarge() bool {
	return slices.ContainsFunc(f.s.Collections, func(c Collection) bool { return c.Documents.Value > f.t.ScannedFrom })
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }
