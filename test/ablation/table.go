package main

import (
	"encoding/json"
	"fmt"
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

// lostBars are the bars that were held, and are not any more. Those that are only nearer
// to their limits by 5 % and more are counted.
func lostBars(r, whole *result) (lost []string) {
	nearer := 0
	for name, seen := range r.Bars {
		before := whole.Bars[name]
		switch {
		case before.past(1) || before.Must == "":
		case seen.past(1):
			lost = append(lost, fmt.Sprintf("%s %.3g, was %.3g (%s)", name, seen.Value, before.Value, seen.Must))
		case barSeen{fmt.Sprint(seen.sign(), " ", before.Value), seen.Value}.past(1.05):
			nearer++
		}
	}
	slices.Sort(lost)
	if nearer > 0 {
		lost = append([]string{fmt.Sprintf("%d are 5 %% nearer to their limits", nearer)}, lost...)
	}
	return lost
}

func (b barSeen) sign() string {
	sign, _, _ := strings.Cut(b.Must, " ")
	return sign
}

// past reports whether the value is so many times beyond its bound: "≤ 1.1", "≥ 0.9".
func (b barSeen) past(times float64) bool {
	sign, number, _ := strings.Cut(b.Must, " ")
	bound, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil:
		return true
	case sign == "≥":
		return b.Value*times < bound
	default:
		return b.Value > bound*times
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
