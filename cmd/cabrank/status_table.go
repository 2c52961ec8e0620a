package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/cli"
)

// statusText is what cabrank status prints: a summary, what it is about, a table
// of workers and one of upstreams, as far as there are any. It fits the screen.
func statusText(s admin.Status, now time.Time, on cli.Screen) string {
	lines := summary(s, now, on)
	if len(s.Workers) > 0 {
		lines = append(append(lines, ""), workerTable(s.Workers, now).lines(on)...)
	}
	if len(s.Upstreams) > 0 {
		lines = append(append(lines, ""), upstreamTable(s.Upstreams, now).lines(on)...)
	}
	// Lines that scroll away could not be replaced; the cursor needs one.
	if most := on.Height - 1; on.Height > 1 && len(lines) > most {
		left := len(lines) - most + 1
		lines = append(lines[:most-1], fmt.Sprintf("and %d lines more", left))
	}
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(on.Fit(strings.TrimRight(line, " ")) + "\n")
	}
	return text.String()
}

// summary is what one wants to know at a glance, then who answers.
func summary(s admin.Status, now time.Time, on cli.Screen) []string {
	parts := []string{readiness(s, on)}
	queue := fmt.Sprintf("queue %d", s.Queue.Waiting)
	if s.Queue.Waiting > 0 {
		queue += fmt.Sprintf(" (oldest %s)", brief(seconds(s.Queue.OldestSeconds)))
	}
	if s.Queue.Overload {
		queue += " " + on.Paint(cli.Changing, "overload")
	}
	parts = append(parts, queue, fmt.Sprintf("calls %d", s.InFlight))
	if s.State != "serving" {
		parts = append(parts, on.Paint(cli.Changing, s.State))
	}
	lines := []string{strings.Join(append(parts, rollParts(s.Roll, on)...), ", ")}

	who := []string{fmt.Sprintf("cabrank %s (pid %d)", s.Version, s.PID), "up " + brief(now.Sub(s.Started))}
	if s.Generation > 1 {
		who = append(who, fmt.Sprintf("generation %d", s.Generation))
	}
	for _, listener := range s.Listeners {
		if listener.Kind == "calls" {
			who = append(who, "on "+listener.Address)
		}
	}
	if scaling := s.Scaling; scaling != nil {
		how := "auto"
		if scaling.Held {
			how = "held"
		}
		who = append(who, fmt.Sprintf("workers %s (%d to %d)", how, scaling.Min, scaling.Max))
	}
	lines = append(lines, strings.Join(who, ", "))
	return append(lines, troubles(s, now, on)...)
}

// readiness is "ready 3 of 4", with upstreams beside workers both.
func readiness(s admin.Status, on cli.Screen) string {
	var parts []string
	outside := len(s.Upstreams) + len(s.Names)
	if s.Wanted > 0 || outside == 0 {
		parts = append(parts, share(s.Ready, s.Wanted, "", on))
	}
	if outside > 0 {
		reached := 0
		for _, upstream := range s.Upstreams {
			if upstream.State == "ready" {
				reached++
			}
		}
		parts = append(parts, share(reached, len(s.Upstreams), " upstreams", on))
	}
	return "ready " + strings.Join(parts, ", ")
}

func share(n, of int, what string, on cli.Screen) string {
	text := fmt.Sprintf("%d of %d%s", n, of, what)
	if n < of {
		return on.Paint(cli.Changing, text)
	}
	return text
}

// rollParts is the replacement that runs.
func rollParts(roll *admin.RollStatus, on cli.Screen) []string {
	if roll == nil || !roll.Running {
		return nil
	}
	text := fmt.Sprintf("%s %d/%d", roll.Reason, roll.Completed, roll.Total)
	if roll.Step != "" {
		text += ": " + roll.Step
	}
	return []string{on.Paint(cli.Changing, text)}
}

// troubles are lines about what went wrong last.
func troubles(s admin.Status, now time.Time, on cli.Screen) []string {
	var lines []string
	if roll := s.Roll; roll != nil && !roll.Running && roll.CallsCut > 0 {
		lines = append(lines, on.Paint(cli.Bad, fmt.Sprintf("the last %s cut %s%s", roll.Reason, cli.Plural(roll.CallsCut, "call"), ago(roll.Ended, now))))
	}
	if roll := s.Roll; roll != nil && !roll.Running && roll.Error != "" {
		lines = append(lines, on.Paint(cli.Bad, fmt.Sprintf("the last %s stopped%s: %s", roll.Reason, ago(roll.Ended, now), roll.Error)))
	}
	for _, name := range s.Names {
		if name.Addresses == 0 {
			lines = append(lines, on.Paint(cli.Bad, name.Name+" stands for no address"))
		}
	}
	if reload := s.Config.Reload; reload != nil && reload.Error != "" {
		lines = append(lines, on.Paint(cli.Bad, fmt.Sprintf("the last reload was refused%s: %s", ago(reload.Time, now), reload.Error)))
	}
	return lines
}

func ago(then, now time.Time) string {
	if then.IsZero() {
		return ""
	}
	return " " + brief(now.Sub(then)) + " ago"
}

func workerTable(workers []admin.WorkerStatus, now time.Time) table {
	t := table{
		{title: "WORKER"}, {title: "STATE", color: stateColor}, {title: "FOR", right: true}, {title: "PID", right: true}, {title: "GEN", right: true},
		{title: "ADDRESS"}, {title: "CALLS", right: true}, {title: "SERVED", right: true}, {title: "MEMORY", right: true},
		{title: "RESTARTS"}, {title: "NOTE"},
	}
	for _, w := range workers {
		t.add(w.Name, w.State, since(w.Since, now), number(w.PID), strconv.Itoa(w.Generation), w.Address,
			fmt.Sprintf("%d/%d", w.InFlight, w.Slots), strconv.FormatUint(w.Served, 10),
			bytesText(w.MemoryBytes), counts(w.Restarts), workerNote(w))
	}
	return t
}

// workerNote is what is out of the ordinary about a worker.
func workerNote(w admin.WorkerStatus) string {
	var notes []string
	if w.Ghosts > 0 {
		notes = append(notes, ghostText(w.Ghosts))
	}
	if w.Reason != "" {
		notes = append(notes, w.Reason)
	}
	// A worker that serves has no use for its predecessor's last words.
	if w.LastExit != "" && stateColor(w.State) != cli.Good {
		notes = append(notes, "last exit: "+w.LastExit)
	}
	return strings.Join(notes, ", ")
}

// ghostText says what a ghost is where there is one.
func ghostText(n int) string {
	if n == 1 {
		return "1 ghost (a slot held for a caller who has gone)"
	}
	return cli.Plural(n, "ghost") + " (slots held for callers who have gone)"
}

func upstreamTable(upstreams []admin.UpstreamStatus, now time.Time) table {
	t := table{
		{title: "UPSTREAM"}, {title: "STATE", color: stateColor}, {title: "FOR", right: true},
		{title: "CALLS", right: true}, {title: "SERVED", right: true}, {title: "NOTE"},
	}
	for _, u := range upstreams {
		var notes []string
		if len(u.From) > 0 {
			notes = append(notes, "from "+strings.Join(u.From, " and "))
		}
		if u.Reason != "" {
			notes = append(notes, u.Reason)
		}
		if u.Ghosts > 0 {
			notes = append(notes, ghostText(u.Ghosts))
		}
		t.add(u.Address, u.State, since(u.Since, now),
			fmt.Sprintf("%d/%d", u.InFlight, u.Slots), strconv.FormatUint(u.Served, 10), strings.Join(notes, ", "))
	}
	return t
}

// stateColor says at a glance whether a state is one to look at.
func stateColor(state string) cli.Color {
	switch state {
	case "ready":
		return cli.Good
	case "crash loop", "not serving", "stopped", "unreachable":
		return cli.Bad
	default:
		return cli.Changing
	}
}

// table is columns of text, aligned.
type table []column

type column struct {
	title string
	right bool                        // numbers
	color func(text string) cli.Color // of a cell; nil: none
	cells []string
}

// add adds a row: one cell for each column.
func (t table) add(row ...string) {
	for i := range t {
		t[i].cells = append(t[i].cells, row[i])
	}
}

// lines returns the titles and the rows. A column without any text is left out.
func (t table) lines(on cli.Screen) []string {
	lines := make([]string, 1+len(t[0].cells))
	for _, column := range t {
		width := 0
		for _, cell := range column.cells {
			width = max(width, utf8.RuneCountInString(cell))
		}
		if width == 0 {
			continue
		}
		width = max(width, len(column.title))
		lines[0] += column.aligned(lines[0], column.title, cli.Heading, width, on)
		for i, cell := range column.cells {
			color := cli.Plain
			if column.color != nil {
				color = column.color(cell)
			}
			lines[i+1] += column.aligned(lines[i+1], cell, color, width, on)
		}
	}
	return lines
}

// aligned is a text behind what stands before it in the line.
func (c column) aligned(before, text string, color cli.Color, width int, on cli.Screen) string {
	padding := strings.Repeat(" ", width-utf8.RuneCountInString(text))
	text = on.Paint(color, text)
	if c.right {
		text = padding + text
	} else {
		text += padding
	}
	if before != "" {
		text = "  " + text
	}
	return text
}

// number is a number that 0 stands for none of.
func number(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

func since(then, now time.Time) string {
	if then.IsZero() {
		return "-"
	}
	return brief(now.Sub(then))
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// brief is a duration in its two largest units, "3h12m", below 10 s with a
// tenth.
func brief(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', -1, 64) + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// bytesText is a size in MiB, empty if it is not known.
func bytesText(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 10<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%d MiB", n>>20)
	}
}

// counts is "17 exit, 1 hung", the most frequent first, or "0".
func counts(of map[string]int) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%d %s", of[name], name))
	}
	return cmp.Or(strings.Join(parts, ", "), "0")
}
