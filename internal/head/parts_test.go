package head

import (
	"bytes"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// The fields of an attempt are where the caller's were, or at the end, in any order of the
// caller's.
func TestParts(t *testing.T) {
	const block = "abTRcPPd" // a field of tries, one of a trace, and the place of a timeout behind a
	for name, c := range map[string]struct {
		own  [OwnFields][]byte
		want string
	}{
		"as it came":           {want: block},
		"with a timeout":       {[OwnFields][]byte{OwnTimeout: []byte("t")}, "atbTRcPPd"},
		"again":                {[OwnFields][]byte{OwnTimeout: []byte("t"), OwnTries: []byte("r")}, "atbrcPPd"},
		"traced":               {[OwnFields][]byte{OwnTrace: []byte("p")}, "abTRcpd"},
		"of a trace of ours":   {[OwnFields][]byte{OwnTrace: []byte("p"), OwnState: {}}, "abTRcpd"},
		"what it did not have": {[OwnFields][]byte{OwnState: []byte("s")}, block + "s"},
	} {
		h := &Head{Block: []byte(block)}
		h.mark(OwnTimeout, 1, 0)
		h.mark(OwnTries, 2, 2)
		h.mark(OwnTrace, 5, 2)
		h.mark(OwnTrace, 7, 1) // the first one counts
		got := bytes.Join(h.Parts(nil, &c.own), nil)
		testkit.Want(t, string(got) == c.want, "%s: %s, want %s", name, got, c.want)
	}
}
