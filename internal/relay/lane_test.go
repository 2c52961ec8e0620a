package relay

import (
	"testing"
	"testing/synctest"

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
	nightly := &key{lane: g.settings().naming.lanes["nightly"]}
	for _, c := range []struct {
		path string
		key  *key
		want uint8
	}{
		{"/test.Admin/Users", nil, 1},
		{"/test.Admin/Users", nightly, 1},
		{"/test.Admin/Export", nil, 2},
		{"/test.Greeter/Stop", nil, 1},
		{"/test.Greeter/Stop/x", nil, 0},
		{hello, nil, 0},
		{hello, nightly, 2},
		{hello, &key{}, 0},
		{"*", nil, 0},
		{"", nightly, 2},
	} {
		if got := g.laneOf([]byte(c.path), c.key); got != c.want {
			t.Errorf("%s: lane %d, want %d", c.path, got, c.want)
		}
	}
}

// A slot that a lane has reserved serves its calls while all others wait.
func TestLaneHasItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, by(ByMetadata, "x-user"), func(o *Options) {
			o.Lanes = []Lane{{LaneOptions: rank.LaneOptions{Name: "admin", Reserve: 1}, Methods: []string{"/test.Admin/*"}, Keys: []string{"root"}}}
		})
		_, worker := g.pipeWorker("w1", 2)
		caller := g.pipeCaller()
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		caller.WriteHeaders(3, end, request(hello)...)
		g.wantWaiting(1)
		for i, list := range [][]string{request("/test.Admin/Users"), request(hello, "x-user", "root")} {
			down, up := uint32(5+2*i), uint32(3+2*i)
			caller.WriteHeaders(down, end, list...)
			worker.WantHeaders(up, end)
			reply(worker, up)
			wantReply(caller, down)
		}
		reply(worker, 1)
		wantReply(caller, 1)
		worker.WantHeaders(7, end)
		reply(worker, 7)
		wantReply(caller, 3)
	})
}
