package relay

import (
	"os"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The table of states in docs/life-of-a-call.md is that of leadsTo.
func TestStatesAreThoseOfTheDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/life-of-a-call.md")
	testkit.Must(t, err)
	named := map[string]callState{}
	for s := callNew; s <= callOver; s++ {
		named[s.String()] = s
	}
	_, table, _ := strings.Cut(string(text), "| state | the call | may become |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	told := map[[2]callState]bool{}
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		for from := range strings.SplitSeq(cells[1], ",") {
			for to := range strings.FieldsFuncSeq(cells[3], func(r rune) bool { return r == ',' || r == ' ' }) {
				told[[2]callState{named[strings.TrimSpace(from)], named[to]}] = true
			}
		}
	}
	for from := range callOver + 1 {
		for to := range callOver {
			if said := told[[2]callState{from, to}]; said != from.leadsTo(to) {
				t.Errorf("%v to %v: docs %v, code %v", from, to, said, from.leadsTo(to))
			}
		}
		testkit.Want(t, from.leadsTo(callOver), "%v cannot be over", from)
	}
}
