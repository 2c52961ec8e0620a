package main

import (
	"fmt"
	"strconv"
	"strings"
)

// inWords is the picture for those who do not see it: what the axes are, and
// the value of each line at the ticks of the x axis, or at its next point.
func (c chart) inWords() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Lines of %s over %s.", c.y.label, c.x.label)
	if c.band.label != "" {
		fmt.Fprintf(&b, " From %s to %s: %s.", c.x.name(c.band.from), c.x.name(c.band.to), c.band.label)
	}
	for _, l := range c.lines {
		fmt.Fprintf(&b, " %s:", l.label)
		for i, tick := range c.x.ticks {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, " %s at %s", c.y.name(l.next(tick)), c.x.name(tick))
		}
		b.WriteByte('.')
	}
	fmt.Fprintf(&b, " %s", c.note)
	return b.String()
}

// name is a value as people read it: whole, with commas between the thousands.
func (a axis) name(v float64) string {
	if a.percent {
		v *= 100
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
