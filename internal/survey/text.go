package survey

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"oxbow/internal/terminal"
)

// Report is a survey with what was found: what JSON and the page show.
type Report struct {
	Survey   *Survey   `json:"survey"`
	Findings []Finding `json:"findings"`
}

// Print writes the report as text: the findings first.
func (r *Report) Print(w io.Writer) error {
	for i := range r.Findings {
		f := &r.Findings[i]
		mark := "warning"
		if f.Serious {
			mark = "SERIOUS"
		}
		fmt.Fprintf(w, "%s  %s  %s\n  %s\n  %s\n", mark, f.ID, terminal.Text(f.About), terminal.Text(f.Title), terminal.Text(f.Evidence))
		for _, m := range f.Mend {
			fmt.Fprintf(w, "  > %s\n", terminal.Text(m))
		}
		fmt.Fprintln(w)
	}
	s := r.Survey
	if len(r.Findings) == 0 {
		fmt.Fprintf(w, "nothing found\n\n")
	}
	fmt.Fprintf(w, "version %s, %d databases, %d collections, %d looked at; as of %s\n\n", orElse(s.Version, notReported), s.Databases, s.Count, len(s.Collections), s.At.UTC().Format(time.RFC3339))
	if err := r.printMembers(w); err != nil {
		return err
	}
	if err := r.printCollections(w); err != nil {
		return err
	}
	for _, m := range s.Missing {
		fmt.Fprintf(w, "not reported: %s\n", terminal.Text(m))
	}
	return nil
}

func (r *Report) printMembers(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "MEMBER\tSET\tSTATE\tBEHIND\tDELAY\tDISK FREE\tSCANS/S")
	for i := range r.Survey.Members {
		m := &r.Survey.Members[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.Host, orElse(m.Set, "-"), m.Shown(), m.Behind(), timeText(seconds(m.DelaySeconds)), r.DiskFree(m.Host), r.ScanRate(m.Host))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	for i := range r.Survey.Oplogs {
		o := &r.Survey.Oplogs[i]
		fmt.Fprintf(w, "oplog of %s: %s, from %s to %s, %s in the busiest hour\n\n", o.Set, size(o.SizeBytes), o.First.Format(time.RFC3339), o.Last.Format(time.RFC3339), size(o.PeakHourBytes))
	}
	return nil
}

func (r *Report) printCollections(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(table, "COLLECTION\tDOCUMENTS\tDATA\tON DISK\tREUSABLE\tINDEXES\tGROWTH\tCHANGES/DAY\tTIME FIELD\tOLDEST")
	for i := range r.Survey.Collections {
		c := &r.Survey.Collections[i]
		fmt.Fprintln(table, strings.Join([]string{terminal.Text(c.Namespace), number(c.Documents), size(c.DataBytes), size(c.StorageBytes), size(c.ReusableBytes), size(c.IndexBytes), r.Growth(c),
			c.ChangesPerDay(), terminal.Text(c.TimeShown()), c.OldestShown()}, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return nil
}

// Shown is a member's state with what else there is to know.
func (m *Member) Shown() string {
	text := m.State
	if m.Hidden {
		text += ", hidden"
	}
	if m.Votes == 0 && m.Set != "" {
		text += ", no vote"
	}
	return text
}

// Behind is how far a member is behind its primary.
func (m *Member) Behind() string {
	if !m.BehindMillis.Reported {
		return "-"
	}
	return timeText(time.Duration(m.BehindMillis.Value) * time.Millisecond)
}

func (r *Report) server(host string) *Server {
	for i := range r.Survey.Servers {
		if r.Survey.Servers[i].Host == host {
			return &r.Survey.Servers[i]
		}
	}
	return &Server{}
}

// DiskFree is what a server has free.
func (r *Report) DiskFree(host string) string {
	s := r.server(host)
	if !s.DiskTotal.Reported || !s.DiskUsed.Reported {
		return notReported
	}
	return sizeText(s.DiskTotal.Value - s.DiskUsed.Value)
}

// ScanRate is how many whole scans a server counts a second.
func (r *Report) ScanRate(host string) string {
	s := r.server(host)
	if !s.Scans.Reported || !s.ScansAfter.Reported || r.Survey.Between <= 0 {
		return notReported
	}
	return fmt.Sprintf("%.1f", float64(s.ScansAfter.Value-s.Scans.Value)/r.Survey.Between.Seconds())
}

// Growth is how many documents a collection gets: in a day, as a sample has it, else a second, between the two looks.
func (r *Report) Growth(c *Collection) string {
	switch {
	case c.LastDay.Reported:
		return "about " + numberText(c.LastDay.Value) + " a day"
	case c.DocumentsAfter.Reported && c.Documents.Reported && r.Survey.Between > 0:
		return fmt.Sprintf("%+.1f a second", float64(c.DocumentsAfter.Value-c.Documents.Value)/r.Survey.Between.Seconds())
	}
	return notReported
}

// ChangesPerDay is how often a document is updated or deleted in a day, on average.
func (c *Collection) ChangesPerDay() string {
	if !c.Changed.Reported || c.ChangedSeconds.Value <= 0 || c.Documents.Value <= 0 {
		return notReported
	}
	return fmt.Sprintf("%.2f", float64(c.Changed.Value)*24*3600/float64(c.ChangedSeconds.Value)/float64(c.Documents.Value))
}

// TimeShown is the time field and its types.
func (c *Collection) TimeShown() string {
	if c.Time == nil {
		return "none found"
	}
	var types []string
	for _, t := range c.Time.Types {
		types = append(types, t.Name)
	}
	return c.Time.Name + " (" + strings.Join(types, ", ") + ")"
}

// OldestShown is the oldest document of the sample.
func (c *Collection) OldestShown() string {
	if c.Oldest.IsZero() {
		return "-"
	}
	return c.Oldest.Format("2006-01-02 15:04")
}

func size(f Figure) string {
	if !f.Reported {
		return notReported
	}
	return sizeText(f.Value)
}

func number(f Figure) string {
	if !f.Reported {
		return notReported
	}
	return numberText(f.Value)
}

func orElse(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
