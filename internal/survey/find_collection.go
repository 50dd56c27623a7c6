package survey

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"oxbow/internal/terminal"
)

// shell is a collection in the shell.
func (c *Collection) shell() string {
	database, name, _ := strings.Cut(c.Namespace, ".")
	return "db.getSiblingDB(" + quoted(database) + ").getCollection(" + quoted(name) + ")"
}

// command is a command on the collection, in the shell.
func (c *Collection) command(name, more string) string {
	database, collection, _ := strings.Cut(c.Namespace, ".")
	return "db.getSiblingDB(" + quoted(database) + ").runCommand({" + name + ": " + quoted(collection) + more + "})"
}

// purge is the command that looks how a collection's documents of an age can go.
func (f *finder) purge(c *Collection, age string) string {
	field, unit := "_id", "objectId"
	if c.Time != nil {
		field, unit = c.Time.Name, units[c.Time.Types[0].Name]
	}
	text := "oxbow purge plan --uri " + f.uri + " --ns " + terminal.Argument(c.Namespace) + " --time-field " + terminal.Argument(field)
	if unit != "" {
		text += " --unit " + unit
	}
	return text + " --before " + age
}

// units are how layouts and purges name what a time field holds; dates are what they take it for.
var units = map[string]string{"seconds": "s", "milliseconds": "ms", "objectId": "objectId"}

// expiry finds TTL indexes that do not keep up.
func (f *finder) expiry(c *Collection) {
	b := c.Expired
	if b == nil || seconds(b.Behind) <= f.t.TTLBehind {
		return
	}
	evidence := fmt.Sprintf("the index %s removes documents after %s; its oldest document is of %s, %s overdue", b.Index, timeText(seconds(float64(b.Expires))), b.Oldest.Format(time.RFC3339),
		timeText(seconds(b.Behind)))
	switch {
	case b.Count.Value >= CountedMost:
		evidence += fmt.Sprintf("; more than %s are", numberText(CountedMost))
	case b.Count.Reported:
		evidence += fmt.Sprintf("; %s are", numberText(b.Count.Value))
	default:
		evidence += "; how many are is not reported"
	}
	for _, s := range f.s.Servers {
		if s.TTLDeleted.Reported && s.UptimeSeconds.Value > 0 && s.TTLPasses.Value > 0 {
			evidence += fmt.Sprintf("; %s has removed %.0f documents a second since its start, in %s passes", s.Host, float64(s.TTLDeleted.Value)/float64(s.UptimeSeconds.Value), numberText(s.TTLPasses.Value))
			break
		}
	}
	f.add(true, "ttl-behind", c.Namespace, "A TTL index does not keep up", evidence, f.purge(c, fmt.Sprintf("%ds", b.Expires)))
}

// times finds collections whose documents do not all say how old they are, or none does.
func (f *finder) times(c *Collection) {
	if c.Time == nil {
		if c.Documents.Value > f.t.UntimedFrom && c.Sampled > 0 && !hasType(c.IDTypes, "objectId") {
			f.add(false, "no-time", c.Namespace, "Nothing says how old documents are",
				fmt.Sprintf("none of %d sampled documents of %s has a field with a time, and their _id is %s: nothing can go by age", c.Sampled, numberText(c.Documents.Value), names(c.IDTypes)),
				c.command("update", `, updates: [{q: {time: {$exists: false}}, u: [{$set: {time: "$$NOW"}}], multi: true}], comment: "oxbow:allow-scan"`)+"   // in a quiet hour: they are as old as this, then")
		}
		return
	}
	if len(c.Time.Types) < 2 {
		return
	}
	field, main := c.Time.Name, c.Time.Types[0].Name
	mend := []string{c.shell() + ".countDocuments({" + quoted(field) + ": {$not: " + likeTime(main) + "}}, {comment: \"oxbow:allow-scan\"})"}
	for _, t := range c.Time.Types[1:] {
		if t.Name == "string" && main == "date" {
			mend = append(mend, c.command("update", fmt.Sprintf(`, updates: [{q: {%s: {$type: "string"}}, u: [{$set: {%s: {$toDate: %s}}}], multi: true}]`, quoted(field), quoted(field), quoted("$"+field))))
		}
	}
	f.add(false, "time-types", c.Namespace, "The time field has several types, or is missing",
		fmt.Sprintf("%s is %s in %d sampled documents: what expires by it leaves the others for ever", field, names(c.Time.Types), c.Sampled), mend...)
}

func hasType(list []Type, name string) bool {
	return slices.ContainsFunc(list, func(t Type) bool { return t.Name == name })
}

func names(list []Type) string {
	var parts []string
	for _, t := range list {
		parts = append(parts, fmt.Sprintf("%s (%d)", t.Name, t.Count))
	}
	return strings.Join(parts, ", ")
}

// likeTime is what a time of one type matches, and no other.
func likeTime(name string) string {
	switch name {
	case "seconds":
		return fmt.Sprintf("{$gte: %.0f, $lt: %.0f}", leastSeconds, mostSeconds)
	case "milliseconds":
		return fmt.Sprintf("{$gte: %.0f, $lt: %.0f}", mostSeconds, mostMillis)
	}
	return "{$type: " + quoted(name) + "}"
}

// holes finds files with much room in them that nothing uses.
func (f *finder) holes(c *Collection) {
	if !c.ReusableBytes.Reported || c.StorageBytes.Value <= 0 {
		return
	}
	share := float64(c.ReusableBytes.Value) / float64(c.StorageBytes.Value)
	if c.ReusableBytes.Value < f.t.ReusableBytes || share < f.t.ReusableShare {
		return
	}
	f.add(false, "fragmented", c.Namespace, "A file is full of holes",
		fmt.Sprintf("%s of %s can be used again (%.0f %%)", sizeText(c.ReusableBytes.Value), sizeText(c.StorageBytes.Value), 100*share),
		c.command("compact", "")+"   // on one secondary after the other, then on the primary when it has stepped down")
}

// changes finds collections that are updated and deleted so much that their holes want a database of their own.
func (f *finder) changes(c *Collection) {
	if !c.Changed.Reported || c.ChangedSeconds.Value < leastUptime || c.Documents.Value < f.t.ChangedFrom || f.alone(c) {
		return
	}
	days := float64(c.ChangedSeconds.Value) / (24 * 3600)
	perDay := float64(c.Changed.Value) / days / float64(c.Documents.Value)
	if perDay < f.t.ChangesPerDay {
		return
	}
	_, name, _ := strings.Cut(c.Namespace, ".")
	f.add(false, "churn", c.Namespace, "A collection changes all the time, among others",
		fmt.Sprintf("%s updates and deletes since the server's start %s ago, on %s documents: each document %.1f times a day; in a database of its own its holes stay its own",
			numberText(c.Changed.Value), timeText(seconds(float64(c.ChangedSeconds.Value))), numberText(c.Documents.Value), perDay),
		"db.adminCommand({renameCollection: "+quoted(c.Namespace)+", to: "+quoted(name+"."+name)+"})   // it copies: stop its writers before")
}

// leastUptime is how long a server must have counted, in seconds.
const leastUptime = 600

// alone reports whether a collection has its database for itself.
func (f *finder) alone(c *Collection) bool {
	database, _, _ := strings.Cut(c.Namespace, ".")
	return !slices.ContainsFunc(f.s.Collections, func(o Collection) bool {
		return o.Namespace != c.Namespace && strings.HasPrefix(o.Namespace, database+".")
	})
}

// indexes finds collections whose indexes are larger than what they are on.
func (f *finder) indexes(c *Collection) {
	if !c.IndexBytes.Reported || c.IndexBytes.Value < f.t.IndexBytes || c.IndexBytes.Value <= c.DataBytes.Value {
		return
	}
	bySize := slices.Clone(c.Indexes)
	slices.SortStableFunc(bySize, func(a, b Index) int { return cmp.Compare(b.Bytes.Value, a.Bytes.Value) })
	var parts, mend []string
	for _, x := range bySize[:min(4, len(bySize))] {
		parts = append(parts, fmt.Sprintf("%s %s", x.Name, sizeText(x.Bytes.Value)))
	}
	for _, x := range bySize {
		if x.Name != "_id_" && !x.Unique && !x.ExpireSeconds.Reported && x.Uses.Reported && x.Uses.Value == 0 {
			parts = append(parts, x.Name+" was not used since the server's start")
			mend = append(mend, c.command("dropIndexes", ", index: "+quoted(x.Name))+"   // hide it first: collMod, {index: {name, hidden: true}}")
		}
	}
	if len(mend) == 0 {
		mend = append(mend, c.shell()+".aggregate([{$indexStats: {}}])   // drop what nothing uses")
	}
	f.add(false, "indexes-larger", c.Namespace, "Indexes are larger than their data",
		fmt.Sprintf("%s of indexes on %s of documents: %s", sizeText(c.IndexBytes.Value), sizeText(c.DataBytes.Value), strings.Join(parts, ", ")), mend...)
}

// plainInYAML are the names that YAML takes as they are.
var plainInYAML = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

func inYAML(name string) string {
	if plainInYAML.MatchString(name) {
		return name
	}
	return quoted(name)
}

// size finds collections that want to be split.
func (f *finder) size(c *Collection) {
	if c.Documents.Value <= f.t.Large {
		return
	}
	layout := "{hash: {field: _id, count: 64}}"
	if c.Time != nil {
		layout = "{time: {field: " + inYAML(c.Time.Name) + ", unit: " + cmp.Or(units[c.Time.Types[0].Name], "date") + ", every: day}, keep: 30d}"
	}
	evidence := fmt.Sprintf("%s documents, %s, with %s of indexes", numberText(c.Documents.Value), sizeText(c.DataBytes.Value), sizeText(c.IndexBytes.Value))
	if c.LastDay.Reported {
		evidence += fmt.Sprintf("; about %s came within a day", numberText(c.LastDay.Value))
	}
	f.add(false, "large", c.Namespace, "A collection is very large, and in one piece", evidence,
		"collections: {"+inYAML(c.Namespace)+": "+layout+"}   # in oxbow.yaml, then: oxbow check -c oxbow.yaml")
}
