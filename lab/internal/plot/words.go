package plot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Words is the picture for those who do not see it: what the axes are, and
// the value of each line at the ticks of the x axis, or at its next point.
func (c Chart) Words() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Lines of %s over %s.", c.Y.Label, c.X.Label)
	if c.Band.Label != "" {
		fmt.Fprintf(&b, " From %s to %s: %s.", c.X.name(c.Band.From), c.X.name(c.Band.To), c.Band.Label)
	}
	for _, e := range c.Events {
		if e.To > e.From {
			fmt.Fprintf(&b, " From %s to %s: %s.", c.X.name(e.From), c.X.name(e.To), e.Label)
		} else {
			fmt.Fprintf(&b, " At %s: %s.", c.X.name(e.From), e.Label)
		}
	}
	for _, l := range c.Lines {
		fmt.Fprintf(&b, " %s: %s.", l.Label, strings.Join(c.told(&l), ", "))
	}
	fmt.Fprintf(&b, " %s", c.Note)
	return strings.TrimSpace(b.String())
}

// told is what a line says: each of its points if they are marked, else what it is at the
// ticks.
func (c Chart) told(l *Line) (values []string) {
	if l.Dots {
		for i, p := range l.Points {
			values = append(values, judged(c.Y.name(p.Y)+" at "+c.X.name(p.X), slices.Contains(l.marked, i)))
		}
		return values
	}
	for _, tick := range c.X.Ticks {
		value := "none"
		if y, ok := l.next(tick, c.X); ok {
			value = c.Y.name(y)
		}
		values = append(values, value+" at "+c.X.name(tick))
	}
	return values
}

// judged adds to a value that it is not, if it is marked.
func judged(value string, marked bool) string {
	if marked {
		return value + " (not judged)"
	}
	return value
}

// name is a value as people read it: as Format has it, or whole, with commas between
// the thousands.
func (a Axis) name(v float64) string {
	if a.Format != nil {
		return a.Format(v)
	}
	if a.Percent {
		v *= 100
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
