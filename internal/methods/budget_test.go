package methods

import (
	"errors"
	"testing"
)

// Answers take no more memory than their caller may have.
func TestMemoryOfAnswers(t *testing.T) {
	shared := budget{most: 100 << 10}
	one, other := inflow{budget: &shared, most: mostAnswer}, inflow{budget: &shared, most: mostAnswer}
	fill := func(f *inflow) (size int, err error) {
		for err == nil && size < 1<<20 {
			f.buf = f.buf[:cap(f.buf)]
			err = f.grow(1 << 20)
			size = cap(f.buf)
		}
		return size, err
	}
	size, err := fill(&one)
	if f := (*failure)(nil); !errors.As(err, &f) || size < 32<<10 || size > 100<<10 {
		t.Errorf("%d bytes, %v", size, err)
	}
	one.free()
	if size, err := fill(&other); err == nil || size < 32<<10 {
		t.Errorf("the other has %d bytes, %v", size, err)
	}
	other.free()
	if used := shared.used.Load(); used != 0 {
		t.Errorf("%d bytes are left", used)
	}
}
