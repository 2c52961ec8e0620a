package relay

import (
	"fmt"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Names that strangers ask for do not fill the memory: the oldest goes.
func TestAbsentMethodsAreBounded(t *testing.T) {
	var s services
	s.replace(&description{whole: true})
	path := func(i int) []byte { return fmt.Appendf(nil, "/s%d/m", i) }
	for i := range maxAbsent + 1 {
		s.answeredUnimplemented(path(i))
		s.answeredUnimplemented(path(i))
	}
	testkit.Want(t, !s.lacks(path(0)) && s.lacks(path(1)) && s.lacks(path(maxAbsent)), "not the oldest has gone")
	s.replace(&description{})
	testkit.Want(t, !s.lacks(path(1)), "it is remembered after a change")
}
