package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// fewNames is how many names a cell has at most.
const fewNames = 4

// writeTable writes what was found, the largest mechanisms first.
func writeTable(all []*mechanism) error {
	results, err := readResults()
	if err != nil {
		return err
	}
	medians := map[string]map[string]figures{}
	if text, err := os.ReadFile(measured); err == nil {
		if err := json.Unmarshal(text, &medians); err != nil {
			return err
		}
	}
	whole := results[base]
	if whole == nil {
		whole = &result{}
	}
	var out strings.Builder
	out.WriteString("| mechanism | lines | what it does, and what is done in its place | other tests that fail | bars that are lost | fault tests that fail | workloads that are worse |\n")
	out.WriteString("|---|--:|---|---|---|---|---|\n")
	for _, m := range all {
		r := results[m.name]
		if r == nil {
			r = &result{}
		}
		cells := []string{m.name, strconv.Itoa(m.lines), m.about, "not run", "not run", "not run", "no arm"}
		if r.Tests > 0 {
			cells[3], cells[4] = cell(beyond(r.Failed, whole.Failed)), cell(lostBars(r, whole))
		}
		if r.FaultTests > 0 {
			cells[5] = cell(beyond(r.Faults, whole.Faults))
		} else if len(m.faults) == 0 {
			cells[5] = "no test"
		}
		if lost, ran := losses(medians, m.name); ran {
			cells[6] = cell(lost)
		}
		fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | "))
	}
	return os.WriteFile(folder+"/table.md", []byte(out.String()), 0o600)
}

// beyond leaves out what fails anyway.
func beyond(failed, anyway []string) []string {
	return slices.DeleteFunc(slices.Clone(failed), func(name string) bool { return slices.Contains(anyway, name) })
}

// lostBars says of which bars how many settings were held and are not any more, and how far
// the worst of them is beyond its limit. Those that are only nearer by 5 % are counted.
func lostBars(r, whole *result) (lost []string) {
	type group struct {
		all, lost int
		far       float64
		worst     string
	}
	groups, nearer := map[string]*group{}, 0
	for name, seen := range r.Bars {
		before := whole.Bars[name]
		if before.Must == "" || before.beyond() > 1 {
			continue
		}
		bar, _, _ := strings.Cut(name, ",")
		g := groups[bar]
		if g == nil {
			g = &group{}
			groups[bar] = g
		}
		g.all++
		switch far := seen.beyond(); {
		case far > 1:
			g.lost++
			if far > g.far {
				g.far, g.worst = far, fmt.Sprintf("%s after %s, to be %s", seen, before, seen.Must)
			}
		case far > 1.05*before.beyond():
			nearer++
		}
	}
	for bar, g := range groups {
		if g.lost > 0 {
			lost = append(lost, fmt.Sprintf("%s: %d of %d, at worst %s", bar, g.lost, g.all, g.worst))
		}
	}
	slices.Sort(lost)
	if nearer > 0 {
		lost = append(lost, fmt.Sprintf("%d are 5 %% nearer to their limits", nearer))
	}
	return lost
}

// String is the value as people read it.
func (b barSeen) String() string {
	if b.Value > 1e6 {
		return "∞" // not answered
	}
	return strconv.FormatFloat(b.Value, 'g', 3, 64)
}

// beyond is how many times the value is its limit, "≤ 1.1", or the limit the value,
// "≥ 0.9": above 1 it is not held.
func (b barSeen) beyond() float64 {
	sign, number, _ := strings.Cut(b.Must, " ")
	limit, err := strconv.ParseFloat(number, 64)
	const least = 1e-9 // a limit may be 0, and so may a share be that has to be more
	switch {
	case err != nil:
		return math.Inf(1)
	case sign == "≥":
		return limit / max(b.Value, least)
	default:
		return (b.Value + least) / (limit + least)
	}
}

// cell joins a few names, and says how many there are beside them.
func cell(names []string) string {
	switch rest := len(names) - fewNames; {
	case len(names) == 0:
		return "none"
	case rest > 0:
		return strings.Join(names[:fewNames], "; ") + fmt.Sprintf("; and %d more", rest)
	}
	return strings.Join(names, "; ")
}
