package head

import (
	"testing"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/testkit"
)

// A call has the lane of its method, by whole name before service, or else the lane of its
// caller, or else none.
func TestLanes(t *testing.T) {
	const hello = "/test.Greeter/Hello"
	r := Reader{Lanes: stats.Patterns[uint8]{}}
	r.Lanes.Add("/test.Admin/*", 1)
	r.Lanes.Add("/test.Greeter/Stop", 1)
	r.Lanes.Add("/test.Admin/Export", 2)
	nightly := &callers.Key{Lane: 2}
	for _, c := range []struct {
		path string
		key  *callers.Key
		want uint8
	}{
		{"/test.Admin/Users", nil, 1},
		{"/test.Admin/Users", nightly, 1},
		{"/test.Admin/Export", nil, 2},
		{"/test.Greeter/Stop", nil, 1},
		{"/test.Greeter/Stop/x", nil, 0},
		{hello, nil, 0},
		{hello, nightly, 2},
		{hello, &callers.Key{}, 0},
		{"*", nil, 0},
		{"", nightly, 2},
	} {
		testkit.Equal(t, r.laneOf([]byte(c.path), c.key), c.want, "%s: lane", c.path)
	}
}
