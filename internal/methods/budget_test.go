package methods

import (
	"errors"
	"testing"
)

// Answers that come at the same time share their memory, but for what each may have.
func TestMemoryOfAnswers(t *testing.T) {
	shared := budget{most: 100 << 10}
	one, other := inflow{budget: &shared, most: mostAnswer}, inflow{budget: &shared, most: mostAnswer}
	fill := func(f *inflow) (size int, err error) {
		for err == nil && size < 1<<20 {
			f.buf = f.buf[:cap(f.buf)]
			err = f.grow()
			size = cap(f.buf)
		}
		return size, err
	}
	size, err := fill(&one)
	if f := (*failure)(nil); !errors.As(err, &f) || size < freeAnswer || size > 132<<10 {
		t.Errorf("%d bytes, %v", size, err)
	}
	if size, err := fill(&other); err == nil || size < freeAnswer {
		t.Errorf("the other has %d bytes, %v", size, err)
	}
	one.free()
	other.free()
	if used := shared.used.Load(); used != 0 {
		t.Errorf("%d bytes are left", used)
	}
}
