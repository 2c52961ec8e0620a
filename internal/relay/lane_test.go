package relay

import (
	"testing"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/rank"
)

// A call has the lane of its method, by whole name before service, or else the lane of its
// caller, or else none.
func TestLanes(t *testing.T) {
	g := newRig(t, func(o *Options) {
		o.Lanes = []Lane{
			{LaneOptions: rank.LaneOptions{Name: "admin"}, Methods: []string{"/test.Admin/*", "/test.Greeter/Stop"}},
			{LaneOptions: rank.LaneOptions{Name: "batch"}, Methods: []string{"/test.Admin/Export"}, Keys: []string{"nightly"}},
		}
	})
	nightly := &callers.Key{Lane: g.settings().naming.Lanes["nightly"]}
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
		if got := g.laneOf([]byte(c.path), c.key); got != c.want {
			t.Errorf("%s: lane %d, want %d", c.path, got, c.want)
		}
	}
}
