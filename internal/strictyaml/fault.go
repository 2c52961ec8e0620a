package strictyaml

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/spelling"
)

// MostQuoted bounds what is repeated of a file, in bytes.
const MostQuoted = 60

// Fault is one thing that is wrong with a file.
type Fault struct {
	File    string
	Line    int    // 0 is the file as a whole
	Key     string // empty if it is not about one key
	What    string // what is wrong
	Allowed string // what would be right; empty if What says it
}

// Error returns the fault as one line.
func (f Fault) Error() string {
	text := f.File
	if f.Line > 0 {
		text += ":" + strconv.Itoa(f.Line)
	}
	if f.Key != "" {
		text += ": " + f.Key
	}
	text += ": " + f.What
	if f.Allowed != "" { // a suggestion ends by itself
		text = strings.Replace(text+"; allowed: "+f.Allowed, "?; allowed", "? allowed", 1)
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// Faults are those of a file, in the order of its lines.
type Faults []Fault

// Error returns a line for each fault, without a newline at the end.
func (f Faults) Error() string {
	const mostFaults = 20 // lines
	var lines []string
	for _, fault := range f {
		lines = append(lines, fault.Error())
	}
	if more := len(f) - mostFaults + 1; more > 1 {
		lines = append(lines[:mostFaults-1], fmt.Sprintf("%s: %d more faults", f[0].File, more))
	}
	return strings.Join(lines, "\n")
}

// Quote returns text for an error line, shortened.
func Quote(text string) string {
	if len(text) > MostQuoted {
		return fmt.Sprintf("%q...", text[:MostQuoted])
	}
	return strconv.Quote(text)
}

// DidYouMean says which of the known names was meant by another one, and what stands before it.
func DidYouMean(before, name string, known []string) string {
	if near := spelling.Nearest(name, known); near != "" {
		return "; did you mean " + before + near + "?"
	}
	return ""
}
