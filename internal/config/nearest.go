package config

// maxNameLength bounds the names that are compared, in bytes: no key is nearly
// as long, and the comparison is quadratic.
const maxNameLength = 64

// nearest returns the known name that differs least from name, or "" if none
// is close enough to be what was meant: at most one difference in four
// characters, at least two.
func nearest(name string, known []string) string {
	if len(name) > maxNameLength {
		return ""
	}
	best, least := "", max(2, len(name)/4)+1
	for _, candidate := range known {
		if d := distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	if least >= len(name) { // as many changes as letters: no resemblance
		return ""
	}
	return best
}

// distance counts the insertions, deletions, replacements and swaps of
// neighbors that turn a into b (optimal string alignment).
func distance(a, b string) int {
	before, previous := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(previous[j]+1, row[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, previous = previous, row
	}
	return previous[len(b)]
}
