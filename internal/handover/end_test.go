package handover

import (
	"os"
	"testing"
	"time"
)

// Of a process that is no child of this one nobody here learns how it has ended: that it
// has is enough.
func TestSiblingThatHasEndedIsNotWaitedFor(t *testing.T) {
	ended := make(chan *os.ProcessState, 1)
	ended <- nil
	c := &candidate{options: &Options{EndLimit: time.Hour}, ended: ended}
	if state := c.end(errGone); state != nil {
		t.Error(state)
	}
}
