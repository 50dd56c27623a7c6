package survey

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"size": size, "number": number, "length": func(s float64) string { return timeText(seconds(s)) },
	"when": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
	"share": func(c *Collection) string { // of holes in a file, as a width
		if !c.ReusableBytes.Reported || c.StorageBytes.Value <= 0 {
			return "0"
		}
		return fmt.Sprintf("%.0f", min(100, 100*float64(c.ReusableBytes.Value)/float64(c.StorageBytes.Value)))
	},
	"collections": func(s *Survey) []*Collection { return pointers(s.Collections) },
	"members": func(s *Survey) []*Member {
		all := make([]*Member, len(s.Members))
		for i := range s.Members {
			all[i] = &s.Members[i]
		}
		return all
	},
	"serious": func(list []Finding) int {
		n := 0
		for _, f := range list {
			if f.Serious {
				n++
			}
		}
		return n
	},
}).Parse(pageText))

// Page writes the report as one page that needs nothing else: no script, no font, no image of another server.
func (r *Report) Page(w io.Writer) error { return page.Execute(w, r) }
