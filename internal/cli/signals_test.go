package cli

import (
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The window counts from the signal that was taken: a stream of echoes hides no
// second signal.
func TestEchoes(t *testing.T) {
	var stops Echoes
	begin := time.Now()
	for _, step := range []struct {
		after time.Duration
		echo  bool
	}{{0, false}, {time.Millisecond, true}, {99 * time.Millisecond, true}, {100 * time.Millisecond, false}, {150 * time.Millisecond, true}, {time.Hour, false}} {
		testkit.Equal(t, stops.IsEcho(begin.Add(step.after)), step.echo, "after %v", step.after)
	}
}
