package config

import (
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// What is shown nowhere is there all the same.
func TestWhatIsHidden(t *testing.T) {
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": "workers.env: {A: b, THREADS: 5, EMPTY: ''}\nwarm_up: {method: /a.B/C, message: \"CgNi\\n b28=\"}\nsocket: {redis: h:1 i:2, push_token: t}\nauth: {secret: s}"}))
	if e := c.Workers.Env; len(e) != 3 || e["A"] != "b" || e["THREADS"] != "5" || string(c.WarmUp.Message) != "\n\x03boo" {
		t.Errorf("%v, %q", e, c.WarmUp.Message)
	}
	if calls, events := c.Socket.RedisAddresses(); calls != "h:1" || events != "i:2" || c.Socket.PushToken != "t" || c.Auth.Secret != "s" {
		t.Errorf("%s, %s, %+v, %+v", calls, events, c.Socket, c.Auth)
	}
}

// Where a number adapts, workers begin with as many as otherwise and slots with five, both
// between the bounds, whichever source gave these. Who can stop frees its slot (R5).
func TestWhatAdapts(t *testing.T) {
	for text, want := range map[string]struct {
		workers, slots int
		cancel         string
	}{
		"workers: 1-9":                    {4, 5, "hold"},
		"workers: auto 1 - 3":             {3, 5, "hold"},
		"workers: {count: 5-9}":           {5, 5, "hold"},
		"workers: 2\nslots: 8-200":        {2, 8, "free"},
		"slots: auto 1-3":                 {4, 3, "free"},
		"slots: auto\non_cancel: hold":    {4, 5, "hold"},
		"slots: 7\non_cancel: finish":     {4, 7, "finish"},
		"slots: auto --slots 7":           {4, 7, "hold"},
		"slots: 7 --slots auto":           {4, 5, "free"},
		"workers: 2\nworkers.env: {A: b}": {2, 5, "hold"},
	} {
		file, flag, given := strings.Cut(text, " --slots ")
		from := sources(map[string]string{"cabrank.yml": file})
		if given {
			from.Flags = map[string]string{"slots": flag}
		}
		c := mustLoad(t, from)
		if w := c.Workers; w.Count.N != want.workers || w.Slots.N != want.slots || c.CancelledSlots().String() != want.cancel {
			t.Errorf("%q begins with %d workers and %d slots, %s on cancel", text, w.Count.N, w.Slots.N, c.CancelledSlots())
		}
	}
}

func TestKeyBurst(t *testing.T) {
	for perSecond, want := range map[float64]int{20: 20, 0.5: 1, 0: 0} {
		testkit.Equal(t, (Limits{CallsPerSecond: perSecond}).KeyBurst(), want, "%v a second give a burst of", perSecond)
	}
}

// A command that comes later is judged like one of the configuration.
func TestCommandFits(t *testing.T) {
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": "workers.transport: unix"}))
	for command, want := range map[string]string{
		"ruby --bind={addr} {x}": "",
		"ruby {adr}":             "command line: workers.command: {adr} in word 2 is no placeholder; did you mean {addr}?",
		"ruby {port}":            "a unix socket has no {port}",
	} {
		err := c.CommandFits(strings.Fields(command))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", command, err, want)
		}
	}
	for _, command := range [][]string{{}, {""}, {"", "x"}} {
		testkit.Want(t, c.CommandFits(command) != nil, "%q was accepted", command)
	}
	err := c.CommandFits(nil)
	testkit.Want(t, err == nil, "no command: %v", err)
}
