package method

import (
	"slices"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/spelling"
)

// maxListed bounds how many names an error lists.
const maxListed = 8

// among ends an error about a wrong name with those that are right: nearest first, or
// in their order if there was no name.
func among(what, wrong string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	sorted := slices.Clone(known)
	if wrong != "" {
		sorted = spelling.Sorted(wrong, known)
	}
	rest := ""
	if len(sorted) > maxListed {
		rest = ", and " + strconv.Itoa(len(sorted)-maxListed) + " more"
		sorted = sorted[:maxListed]
	}
	for i, one := range sorted {
		sorted[i] = schema.OneLine(one)
	}
	return "; " + what + ": " + strings.Join(sorted, ", ") + rest
}
