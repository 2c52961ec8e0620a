package trial

import (
	"slices"
	"strings"
)

// together writes lines of the form "name: why" with each reason once, behind the names
// of all that it is for.
func together(lines []string) (reasons []string) {
	names := map[string][]string{}
	for _, line := range lines {
		name, why, _ := strings.Cut(line, ": ")
		if !slices.Contains(reasons, why) {
			reasons = append(reasons, why)
		}
		names[why] = append(names[why], name)
	}
	for i, why := range reasons {
		reasons[i] = strings.Join(names[why], ", ") + ": " + why
	}
	return reasons
}
