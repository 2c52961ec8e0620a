package plot

import (
	"fmt"
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
	for _, l := range c.Lines {
		var values []string
		for _, tick := range c.X.Ticks {
			values = append(values, c.Y.name(l.next(tick))+" at "+c.X.name(tick))
		}
		fmt.Fprintf(&b, " %s: %s.", l.Label, strings.Join(values, ", "))
	}
	fmt.Fprintf(&b, " %s", c.Note)
	return strings.TrimSpace(b.String())
}

// name is a value as people read it: whole, with commas between the thousands.
func (a Axis) name(v float64) string {
	if a.Percent {
		v *= 100
	}
	digits := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
