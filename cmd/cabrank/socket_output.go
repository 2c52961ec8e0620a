package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/cabrank/cabrank/client"
)

// shortID is how much of an id is shown.
const shortID = 8

// shellOutput writes lines of several goroutines.
type shellOutput struct {
	to    io.Writer
	times bool

	mu  sync.Mutex
	now io.Writer
}

func newShellOutput(to io.Writer, times bool) *shellOutput {
	return &shellOutput{to: to, times: times, now: to}
}

// redirect has lines go elsewhere.
func (o *shellOutput) redirect(to io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = to
}

// line writes one line, whatever is in it.
func (o *shellOutput) line(text string) {
	text = plain(text) + "\n"
	if o.times {
		text = time.Now().Format("15:04:05.000 ") + text
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	_, _ = io.WriteString(o.now, text) // who closes the terminal sees nothing more
}

// plain shows characters that a terminal would act on as \u and digits. What others
// send is in these lines.
func plain(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// idText shortens a UUID; ids of juggler.1 are short.
func idText(id string) string {
	if len(id) == 36 {
		return id[:shortID]
	}
	return id
}

// message writes one message, behind the mark of its connection.
func (o *shellOutput) message(mark string, m client.Message) {
	sign := "<"
	switch {
	case m.Sent:
		sign = ">"
	case m.Kind == "exp":
		sign = "!"
	}
	parts := []string{sign, fmt.Sprintf("%-4s", m.Kind)}
	if m.ID != "" {
		parts = append(parts, idText(m.ID))
	}
	switch {
	case m.Pattern != "" && m.Name != "":
		parts = append(parts, m.Name+" ("+m.Pattern+")")
	case m.Name+m.Pattern != "":
		parts = append(parts, m.Name+m.Pattern)
	}
	if m.Kind == "nack" {
		parts = append(parts, fmt.Sprint(m.Code))
	}
	if m.Failed {
		parts = append(parts, "error")
	}
	if m.Text != "" {
		parts = append(parts, m.Text)
	}
	if m.Args != nil {
		parts = append(parts, string(m.Args))
	}
	if m.More {
		parts = append(parts, "...")
	}
	o.line(mark + strings.Join(parts, " "))
}
