// Package spelling finds the known name that somebody meant who wrote another
// one. It knows nothing of what the names are for.
package spelling

import (
	"slices"
	"strings"
)

// maxNameLength bounds the names that are compared, in bytes: the comparison is
// quadratic.
const maxNameLength = 128

// Nearest returns the known name that differs least from name, or "" if none
// is close enough to be what was meant: at most one difference in four
// characters, at least two.
func Nearest(name string, known []string) string {
	if len(name) > maxNameLength {
		return ""
	}
	best, least := "", max(2, len(name)/4)+1
	for _, candidate := range known {
		if d := Distance(name, candidate); d < least {
			best, least = candidate, d
		}
	}
	if least >= len(name) { // as many changes as letters: no resemblance
		return ""
	}
	return best
}

// Sorted returns the known names, those that differ least from name first. Of
// names with dots the last part counts, if it is nearer than the whole: people
// leave out the package.
func Sorted(name string, known []string) []string {
	away := make(map[string]int, len(known))
	for _, candidate := range known {
		away[candidate] = min(Distance(name, candidate), Distance(lastPart(name), lastPart(candidate)))
	}
	sorted := slices.Clone(known)
	slices.SortFunc(sorted, func(a, b string) int {
		if d := away[a] - away[b]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return sorted
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// Distance counts the insertions, deletions, replacements and swaps of
// neighbors that turn a into b (optimal string alignment). Names of more than 128
// bytes are as far away as they are long.
func Distance(a, b string) int {
	if len(a) > maxNameLength || len(b) > maxNameLength {
		return max(len(a), len(b))
	}
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
