package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
)

// showLive shows the demonstration on a terminal until it has ended, or someone ends it.
func (d *demo) showLive(ctx context.Context, terminal *os.File) error {
	view := &liveView{demo: d, ctx: ctx, width: 100}
	_, err := tea.NewProgram(view, tea.WithContext(ctx), tea.WithOutput(terminal), tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil // by a signal, which is a way to end it
	}
	if err != nil {
		return fmt.Errorf("show on the terminal: %w", err)
	}
	return nil
}

// liveView is the model of the terminal's view.
type liveView struct {
	demo   *demo
	ctx    context.Context // of the program that the view lives in
	width  int
	states []demoState // of the last seconds, oldest first
	news   []string    // what happened last, latest first
}

// Messages of the view.
type (
	lookedMsg demoState
	dueMsg    struct{} // it is time to look
	overMsg   struct{}
)

const (
	lookEvery = 500 * time.Millisecond
	maxNews   = 8
)

func (v *liveView) Init() tea.Cmd {
	over := func() tea.Msg { <-v.demo.bench.Done(); return overMsg{} }
	return tea.Batch(v.look, over)
}

func (v *liveView) look() tea.Msg { return lookedMsg(v.demo.look(v.ctx)) }

func (v *liveView) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.KeyPressMsg:
		if key := msg.String(); key == "q" || key == "ctrl+c" || key == "esc" {
			return v, tea.Quit
		}
	case tea.WindowSizeMsg:
		v.width = msg.Width
	case overMsg:
		return v, tea.Quit
	case dueMsg:
		return v, v.look
	case lookedMsg:
		v.take(demoState(msg))
		return v, tea.Tick(lookEvery, func(time.Time) tea.Msg { return dueMsg{} })
	}
	return v, nil
}

// take adds a state and what is new in it.
func (v *liveView) take(s demoState) {
	var last demoState
	if n := len(v.states); n > 0 {
		last = v.states[n-1]
	}
	s.follow(last)
	for _, c := range changes(last, s) {
		v.news = append([]string{s.at.Format(time.TimeOnly) + "  " + c.String()}, v.news...)
	}
	v.news = v.news[:min(len(v.news), maxNews)]
	v.states = append(v.states, s)
	for len(v.states) > 2 && s.at.Sub(v.states[0].at) > lately {
		v.states = v.states[1:]
	}
}

// The styles of the view, in the terminal's own 16 colours.
var (
	bold    = lipgloss.NewStyle().Bold(true)
	faint   = lipgloss.NewStyle().Faint(true)
	active  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	hidden  = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	gone    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	problem = lipgloss.NewStyle().Foreground(lipgloss.Red).Bold(true)
)

func (v *liveView) View() tea.View {
	view := tea.NewView(v.text())
	view.AltScreen = true
	view.WindowTitle = "oxbow demo"
	return view
}

func (v *liveView) text() string {
	var b strings.Builder
	line := func(text string) { b.WriteString(lipgloss.NewStyle().MaxWidth(v.width).Render(text) + "\n") }
	if len(v.states) == 0 {
		return "starting …\n"
	}
	s := v.states[len(v.states)-1]
	line(bold.Render("oxbow demo") + "  " + v.clock(s) + faint.Render("   q ends it"))
	line(fmt.Sprintf("demo.log is one collection to its clients; behind it a partition a minute, kept for %s and then dropped whole", demoKeep))
	line("")
	for _, row := range v.rows(s) {
		line(row)
	}
	line("")
	line(v.load(s))
	line(nextDrop(s))
	if s.err != nil {
		line(problem.Render(s.err.Error()))
	}
	line("")
	for _, n := range v.news {
		line(painted(n))
	}
	line("")
	line(faint.Render("look on with:"))
	for _, text := range v.demo.invitation() {
		line("  " + text)
	}
	return b.String()
}

// clock is the time spent, and the time there is.
func (v *liveView) clock(s demoState) string {
	text := s.at.Sub(v.demo.started).Round(time.Second).String()
	if v.demo.length > 0 {
		text += " of " + v.demo.length.String()
	}
	return text
}

// load is the line on rates and latency.
func (v *liveView) load(s demoState) string {
	first := v.states[0]
	return fmt.Sprintf("%s inserts/s, p99 %s    %s updates/s    %s documents inserted, %d failed",
		bold.Render(fmt.Sprintf("%.0f", rate(first, s, inserted))), bold.Render(latency(s.p99)),
		bold.Render(fmt.Sprintf("%.0f", rate(first, s, updated))), thousands(s.totals.Inserted), s.totals.Failed)
}

// rows are a line a partition, with a bar as long as its documents are many.
func (v *liveView) rows(s demoState) []string {
	most, name := int64(1), len("PARTITION")
	for _, p := range s.partitions {
		most, name = max(most, p.Count), max(name, len(p.Name))
	}
	room := max(v.width-name-44, 10)
	rows := []string{faint.Render(fmt.Sprintf("%-*s  %-14s  %-8s  %10s", name, "PARTITION", "RANGE", "STATE", "DOCUMENTS"))}
	for _, p := range s.partitions {
		style, state := active, p.State
		switch {
		case p.State != "active":
			style = hidden
		case p.Start.After(s.at):
			style, state = faint, "ahead"
		}
		bar := strings.Repeat("█", int(p.Count*int64(room)/most))
		rows = append(rows, fmt.Sprintf("%-*s  %-14s  %s  %10s  %s", name, p.Name, p.span(), style.Render(fmt.Sprintf("%-8s", state)), thousands(p.Count), style.Render(bar)))
	}
	return rows
}

// nextDrop says which partition goes next, and when.
func nextDrop(s demoState) string {
	for _, p := range s.partitions {
		if p.State != "active" {
			continue
		}
		if left := p.End.Add(demoKeep).Sub(s.at); left > 0 {
			return fmt.Sprintf("next to be dropped: %s in %s", p.Name, left.Round(time.Second))
		}
		return fmt.Sprintf("next to be dropped: %s now", p.Name)
	}
	return ""
}

// painted colours an event by what happened.
func painted(news string) string {
	switch {
	case strings.Contains(news, "  dropped "):
		return gone.Render(news)
	case strings.Contains(news, "  hidden "):
		return hidden.Render(news)
	}
	return news
}
