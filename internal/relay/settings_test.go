package relay

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
)

// reload changes the options of a relay that runs, from those that newPipeRig
// gave it.
func (g *rig) reload(change ...func(*Options)) { g.Reconfigure(options(change)) }

// A caller's connection outlives a reload, and each of its calls goes by the
// rule that held when it began, although all of them begin with the same block.
func TestReloadChangesTheRuleOfAMethod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("w1", 3)
		caller := g.pipeCaller()
		begin := func(stream uint32) {
			caller.Batch(func() {
				caller.WriteHeaders(stream, noEnd, request(hello)...)
				caller.WriteData(stream, end, hi())
			})
			worker.WantHeaders(stream, noEnd)
			worker.WantDataBytes(stream, hi(), end)
		}
		fail := func(stream uint32) {
			worker.WriteHeaders(stream, end, append(responseHead(), "grpc-status", "14")...)
		}
		again := func(old, stream uint32) {
			fail(old)
			pass(time.Second) // the retry waits at random
			worker.WantHeaders(stream, noEnd)
			worker.WantDataBytes(stream, hi(), end)
		}
		begin(1)
		reply(worker, 1) // its name is known from now on
		wantReply(caller, 1)
		begin(3)
		g.reload(withRule(MethodRule{Idempotent: true, Retries: 1}))
		begin(5)
		fail(3) // it began when there was no rule
		caller.WantFields(3, end, append(responseHead(), "grpc-status", "14")...)
		again(5, 7)
		g.reload()
		reply(worker, 7)
		wantReply(caller, 5)
		caller.Batch(func() {
			caller.WriteHeaders(7, noEnd, request(hello)...)
			caller.WriteData(7, end, hi())
		})
		worker.WantHeaders(9, noEnd)
		worker.WantDataBytes(9, hi(), end)
		fail(9)
		caller.WantFields(7, end, append(responseHead(), "grpc-status", "14")...)
	})
}

// What each call looks at as it goes along is that of the last reload.
func TestReloadChangesWhatCallsMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t)
		_, worker := g.pipeWorker("worker-1", 1)
		caller := g.pipeCaller()
		g.reload(explaining, withQueue(1, 20*time.Millisecond))
		caller.WriteHeaders(1, end, request(hello)...)
		worker.WantHeaders(1, end)
		caller.WriteHeaders(3, end, request(hello)...)
		g.wantWaiting(1)
		caller.WriteHeaders(5, end, request(hello)...)
		caller.WantFields(5, end, ":status", "200", "content-type", "application/grpc",
			"grpc-status", "8", "grpc-message", "cabrank: queue full", queueField, "0")
		caller.WantFields(3, end, ":status", "200", "content-type", "application/grpc",
			"grpc-status", "8", "grpc-message", "cabrank: no free slot in time", queueField, "20")
		g.reload()
		reply(worker, 1)
		wantReply(caller, 1) // without an explanation
		g.reload(func(o *Options) { o.MaxHops = 1 })
		caller.WriteHeaders(7, end, request(hello, hopsName, "2")...)
		caller.WantFields(7, end, ":status", "200", "content-type", "application/grpc",
			"grpc-status", "9", "grpc-message", "cabrank: call cycle")
	})
}

// What callers are told apart by can change. Connections that are there follow with
// their next call, also where the new field has stood in their dynamic table for long;
// calls that run or wait stay whose they are.
func TestReloadChangesWhoseCallsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPipeRig(t, by(ByMetadata, "x-tenant"))
		_, worker := g.pipeWorker("w1", 9)
		caller := g.pipeCaller()
		stream := uint32(1)
		ask := func(want ...string) { // the same call, indexed from the second time on
			t.Helper()
			caller.WriteHeaders(stream, end, request(hello, "x-tenant", "a", "x-user", "u")...)
			worker.WantFields(stream, end, passedOn(request(hello, "x-tenant", "a", "x-user", "u"))...)
			stream += 2
			pass(2 * maxKeyIdle) // those that nobody has any more are forgotten
			if got := g.keyNames(); !slices.Equal(got, want) {
				t.Errorf("the keys are %q, want %q", got, want)
			}
		}
		ask("a")
		g.reload(by(ByMetadata, "x-user"))
		ask("a", "u")
		ask("a", "u")
		g.reload(by(ByAuthority))
		ask("a", "greeter.test", "u")
		g.reload(by(ByPeer))
		ask("a", "greeter.test", "u", unixPeer)
		g.reload(by(ByNothing))
		ask("a", "greeter.test", "u", unixPeer)
		for id := uint32(1); id < stream; id += 2 {
			reply(worker, id)
			wantReply(caller, id)
		}
		g.reload(by(ByMetadata, "x-tenant"))
		ask("a")
	})
}

// A limit on what each caller may have is one on callers as they are told apart now.
func TestReloadChangesWhomALimitHits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := func(o *Options) { o.Keys.Concurrent = 1 }
		g := newPipeRig(t, by(ByPeer), limited)
		_, worker := g.pipeWorker("w1", 9)
		caller := g.pipeCaller()
		ask := func(stream uint32, tenant string) {
			caller.WriteHeaders(stream, end, request(hello, "x-tenant", tenant)...)
		}
		ask(1, "a")
		worker.WantHeaders(1, end)
		ask(3, "b")
		refused := caller.WantHeaders(3, end)
		g.reload(by(ByMetadata, "x-tenant"), limited)
		ask(5, "b")
		worker.WantHeaders(3, end)
		ask(7, "a") // the first one is still the peer's
		worker.WantHeaders(5, end)
		ask(9, "a")
		if again := caller.WantHeaders(9, end); !slices.Equal(again, refused) {
			t.Errorf("got %q, want %q", again, refused)
		}
	})
}

// More endpoints may be needed for the relay to be ready, or fewer.
func TestReloadChangesReadiness(t *testing.T) {
	g := newRig(t)
	g.worker("w1", 1)
	if !g.Serving() {
		t.Fatal("not ready with a worker")
	}
	g.reload(func(o *Options) { o.MinReady = 2 })
	if g.Serving() {
		t.Error("one worker is ready, two are needed")
	}
	g.reload()
	if !g.Serving() {
		t.Error("not ready again")
	}
}

// R11, R15: what bounds connections is that of new ones; those that are there
// keep their own, and none is ended for being one too many.
func TestReloadChangesNewConnections(t *testing.T) {
	g := newRig(t)
	_, accept := g.worker("w1", 3)
	first := g.caller()
	g.caller()
	g.reload(func(o *Options) { o.Limits.Connections, o.MaxStreams = 1, 3 })
	late := testkit.DialCaller(t, g.addr)
	late.Skip(testkit.Settings)
	late.WantGoAway(http2.ErrCodeEnhanceYourCalm)
	late.WantClosed()
	first.WriteHeaders(1, end, request(hello)...)
	worker := accept()
	worker.WantHeaders(1, end)
	g.reload(func(o *Options) { o.MaxStreams = 3 })
	newcomer := testkit.DialCaller(t, g.addr)
	if settings := newcomer.Greet(); settings[http2.SettingMaxConcurrentStreams] != 3 {
		t.Errorf("a new connection is told %v", settings)
	}
	reply(worker, 1)
	wantReply(first, 1)
}

// Reloads while everything else happens at once: no call is left behind and
// nothing races.
func TestReloadsUnderStress(t *testing.T) {
	for seed := range uint64(2) {
		h := newWildHouse(t, seed)
		h.helpers.Go(func() {
			h.nowAndThen(77, func(dice *rand.Rand) { h.reload(func(o *Options) { changeAtRandom(o, dice) }) })
		})
		h.rush(300).Wait()
		h.wantCalm()
	}
}

func changeAtRandom(o *Options, dice *rand.Rand) {
	yes := func() bool { return dice.IntN(2) == 0 }
	o.QueueLength, o.QueueTimeout = dice.IntN(200), time.Duration(1+dice.IntN(1000))*time.Millisecond
	o.CallTimeout, o.MinReady = time.Duration(dice.IntN(2))*time.Second, 1+dice.IntN(3)
	o.ReplayBytes, o.BufferTotal = dice.IntN(32<<10), int64(1+dice.IntN(8))<<20
	o.StallTimeout, o.AbsorbBytes = time.Duration(dice.IntN(3))*time.Second, dice.IntN(1<<20)
	o.MaxStreams, o.MaxHops, o.Explain = uint32(1+dice.IntN(200)), 1+dice.IntN(8), yes()
	o.Limits.Window, o.Limits.Buffer = int32(16+dice.IntN(64))<<10, (64+dice.IntN(1000))<<10
	o.Limits.Connections, o.KeepAlive = 1+dice.IntN(20), time.Duration(dice.IntN(2))*time.Second
	o.Keys.Concurrent, o.Keys.Rate, o.Keys.Burst = dice.IntN(100), float64(dice.IntN(2)*1000), 100
	o.Keys.Weights = map[string]float64{"127.0.0.1": float64(1 + dice.IntN(5))}
	o.OnCancel = []rank.OnCancel{rank.Hold, rank.Free}[dice.IntN(2)]
	o.Rank.StreamSlots = dice.IntN(4)
	if yes() {
		o.Keys.By, o.Keys.Metadata = []KeySource{ByNothing, ByAuthority, ByMetadata}[dice.IntN(3)], "user-agent"
	}
	if yes() {
		o.Methods, o.RetryBudget = []MethodRule{anyFailure()}, RetryBudget{PerSecond: float64(dice.IntN(1000))}
	}
	if yes() {
		o.Rank.Order, o.Rank.Admit = rank.FIFO, rank.BoundedLength
	}
}

// What the shape of a relay follows from does not change.
func TestReloadKeepsWhatIsFixed(t *testing.T) {
	g := newRig(t, func(o *Options) {
		o.Shards, o.BalanceKey = 2, "x-user"
	})
	g.reload(func(o *Options) {
		o.Shards, o.Log, o.Random, o.SlotsMin, o.SlotsMax = 7, nil, nil, 1, 2
		o.Lanes = []Lane{{LaneOptions: rank.LaneOptions{Name: "a"}, Keys: []string{"k"}}}
	})
	s := g.settings()
	if s.Shards != 2 || s.Log == nil || s.Random == nil || s.BalanceKey != "x-user" ||
		len(s.Lanes) != 0 || s.SlotsMax != 0 || s.naming.lanes["k"] != 0 {
		t.Errorf("got %+v", s.Options)
	}
}
