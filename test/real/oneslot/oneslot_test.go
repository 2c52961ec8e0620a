package oneslot

import "testing"

// What began after its deadline, ran twice or ran nowhere is found.
func TestJudgeFindsFaults(t *testing.T) {
	trial := Trial{Timeout: 10, Calls: []Call{{At: 1}, {At: 2}, {At: 3}}}
	outcomes := []Outcome{{Due: 101, Ended: 105}, {Due: 102, Ended: 113}, {Due: 103, Ended: 104}}
	records := []Record{{Began: 102, Ended: 104}, {Began: 102, Ended: 104}, {Call: 1, Began: 115, Ended: 116, Overlap: true}, {Call: -1}}
	f := Judge(trial, outcomes, 1, records)
	if f.Late != 1 || f.Latest != 3 || f.Twice != 1 || f.Unseen != 1 || f.InTime != 2 || f.Overlaps != 1 || f.Statuses["OK"] != 3 {
		t.Errorf("%+v", f)
	}
}
