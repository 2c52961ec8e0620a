package made_test

import (
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/result"
	"github.com/cabrank/cabrank/lab/test/made"
)

// What is made up can be read, and fits together.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	o := made.Options{Arms: []string{"a", "b"}, Rates: []int{50, 100}, Rounds: 3, Seconds: 10, Effect: 0.8, Workers: 3, Pause: true}
	_, err := made.Save(dir, o)
	testkit.Must(t, err)
	r, err := result.Read(dir)
	testkit.Must(t, err)
	testkit.Want(t, len(r.Blocks) == 12, "%d blocks", len(r.Blocks))
	for i := range r.Blocks {
		record, err := result.ReadRecord(dir, &r.Blocks[i])
		testkit.Must(t, err)
		got, want := record.FailedShare(), r.Blocks[i].Figures["errors"]
		testkit.Want(t, got == want && got != 0, "block %d: errors %v and %v", i+1, got, want)
	}
}
