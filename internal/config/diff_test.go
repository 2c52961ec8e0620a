package config

import (
	"maps"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/internal/worker"
)

// two loads a file before and after a change.
func two(t *testing.T, before, after string) (*Config, *Config) {
	t.Helper()
	return mustLoad(t, sources(map[string]string{"cabrank.yml": before})), mustLoad(t, sources(map[string]string{"cabrank.yml": after}))
}

// A difference is told by key and entry, with both values and with what makes it
// hold; what may be secret is not told.
func TestDiff(t *testing.T) {
	for _, test := range []struct {
		before, after string
		want          string // lines "class key: old to new"
	}{
		{"", "", ""},
		{"queue: {length: 1000}", "# the default, by another way\n", ""},
		{"", "queue: {length: 50}\nlog.level: debug", "reload queue.length: 1000 to 50\nreload log.level: info to debug"},
		{"", "workers: {count: 2, start_port: 9100}", "reload workers.count: 4 to 2\nupgrade workers.start_port: 9000 to 9100"},
		{"", "workers: 1-9", "reload workers.count: 4 to 1-9"},
		{"slots: 5", "slots: auto", "upgrade workers.slots: 5 to 1-200"},
		{"", "workers.command: [a, secret]", "restart workers.command: (hidden) to (hidden)"},
		{"workers.command: a", "workers.command: [a]", ""},
		{"socket.redis: h:1", "socket.redis: h:2", "upgrade socket.redis: (hidden) to (hidden)"},
		{"auth: {secret: a}", "auth: {secret: b}", "upgrade auth: {secret: (hidden)} to {secret: (hidden)}"},
		{"hooks: {before_stop: [a, secret]}", "", "restart hooks: (hidden) to none"},
		{"", "warm_up: {message: AAAB, method: /a.B/C}", "restart warm_up: none to (hidden)"},
		{"workers.env: {A: secret, B: secret, C: same}", "workers.env: {B: other, C: same, D: secret}",
			"restart workers.env[A]: (hidden) to none\nrestart workers.env[B]: (hidden) to (hidden)\nrestart workers.env[D]: none to (hidden)"},
		{"fair: {key: metadata:x-key, weights: {secret: 4}}", "fair: {key: metadata:x-key, weights: {secret: 3, other: 2}}", "reload fair.weights: 1 entry to 2 entries"},
		{"lanes: {a: {keys: [10.0.0.1]}, b: {methods: [/a.B/*]}}", "lanes: {a: {keys: [10.0.0.2], priority: 3}, b: {methods: [/a.B/*]}}",
			`upgrade lanes[a]: {keys: ["1 of them"]} to {keys: ["1 of them"], priority: 3}`},
		{"lanes: {a: {keys: [10.0.0.1]}}", "lanes: {a: {keys: [10.0.0.2]}}", `upgrade lanes[a]: {keys: ["1 of them"]} to {keys: ["1 of them"]}`},
		{"methods: {/a.B/*: {idempotent: true, retries: 2}, /a.B/C: {on_cancel: free}}", "methods: {/a.B/*: {idempotent: true, retries: 3}, /a.B/D: {on_cancel: hold}}",
			"reload methods[/a.B/*]: {idempotent: true, retries: 2, retry_on: [UNAVAILABLE]} to {idempotent: true, retries: 3, retry_on: [UNAVAILABLE]}\n" +
				"reload methods[/a.B/C]: {on_cancel: free} to none\nreload methods[/a.B/D]: none to {on_cancel: hold}"},
		{"metrics.gauges: {b: max, a: min}", "metrics.gauges: per_worker", "upgrade metrics.gauges: {a: min, b: max} to per_worker"},
		{"upstreams: [a:1]", "upstreams: [a:1, b:2]", "reload upstreams: a:1 to a:1, b:2"},
		{"upstreams: [a:1]", "", "upgrade workers.command: none to (hidden)\nupgrade upstreams: a:1 to none"},
		{"upstreams: [a:1]\nworkers.command: a", "workers.command: a", "reload upstreams: a:1 to none"},
	} {
		before, now := two(t, test.before, test.after)
		changes := Diff(before, now)
		lines := make([]string, len(changes))
		for i, c := range changes {
			lines[i] = string(c.Applies) + " " + c.String()
		}
		if got := strings.Join(lines, "\n"); got != test.want {
			t.Errorf("from %q to %q\ngot\n%s\nwant\n%s", test.before, test.after, got, test.want)
		}
		if got := len(changes.By(ByReload)) + len(changes.By(ByRestart)) + len(changes.By(ByUpgrade)); got != len(changes) || len(changes.Keys()) != len(changes) {
			t.Errorf("%d of %d changes have a class", got, len(changes))
		}
	}
}

// What only an upgrade changes stays as it runs, with the place that it came from;
// all else is that of the file.
func TestMerge(t *testing.T) {
	running, loaded := two(t, `
server.port: 7000 # a name of gruf-relay's
slots: 7
workers.count: 3
lanes: {a: {keys: [10.0.0.1]}}
`, `
listen: :7001
slots: auto
workers.count: 2
queue.length: 5
lanes: {b: {keys: [10.0.0.2]}}
workers.command: other
`)
	merged, err := Merge(running, loaded)
	testkit.Must(t, err)
	w := merged.Workers
	if merged.Listen.Port != 7000 || w.Slots != (worker.Amount{N: 7}) || w.Count.N != 2 || merged.Queue.Length != 5 ||
		len(merged.Lanes) != 1 || merged.Lanes[0].Name != "a" || merged.Command[0] != "other" || merged.CancelledSlots() != rank.Hold {
		t.Errorf("got %+v", merged)
	}
	if o := merged.origins; o["listen"].Line != 2 || o["queue.length"].Line != 5 || o["lanes[b]"] != (Origin{}) || o["lanes[a]"].Line != 5 {
		t.Errorf("origins are %v", o)
	}
	if got := Diff(running, merged).By(ByUpgrade); len(got) > 0 {
		t.Errorf("an upgrade seems to have happened: %v", got)
	}
	if got, want := Diff(merged, loaded).Keys(), []string{"listen", "workers.slots", "lanes[a]", "lanes[b]"}; strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("still to be upgraded: %q", got)
	}
	testkit.Want(t, loaded.Listen.Port == 7001 && len(loaded.Lanes) == 1 && loaded.Lanes[0].Name == "b",
		"the loaded one has changed: %+v", loaded)
}

// wantReloaded holds that what runs after a reload is what was loaded, but for what
// only an upgrade changes.
func wantReloaded(t *testing.T, merged, loaded *Config) {
	t.Helper()
	left := Diff(merged, loaded)
	testkit.Want(t, len(left) == len(left.By(ByUpgrade)), "after a reload there are still %v", left)
}

// Whether there are workers at all is decided when cabrank starts.
func TestMergeKeepsWorkersApart(t *testing.T) {
	running, loaded := two(t, "upstreams: [a:1]", "upstreams: [b:1]\nworkers.command: b")
	merged, err := Merge(running, loaded)
	testkit.Want(t, err == nil && !merged.RunsWorkers() && merged.Upstreams[0] == "a:1", "got %+v, %v", merged, err)
}

// What is right by itself and wrong beside what stays is refused.
func TestMergeFaults(t *testing.T) {
	running, loaded := two(t, "slots: 2", "slots: 50\nstream_slots: 100")
	merged, err := Merge(running, loaded)
	const want = "cabrank.yml:2: stream_slots: 100 is more than all slots, 8 (workers.count 4 x workers.slots 2), unless cabrank is upgraded; allowed: 1 to 8, or auto"
	testkit.Want(t, merged == nil && err != nil && err.Error() == want, "got %v, want %s", err, want)
}

// A file that is gone does not turn all settings into defaults; one that comes is
// taken.
func TestMergeMissesItsFile(t *testing.T) {
	with, without := mustLoad(t, sources(map[string]string{"cabrank.yml": "slots: 2"})), mustLoad(t, sources(nil))
	_, err := Merge(with, without)
	testkit.Want(t, err != nil && strings.HasPrefix(err.Error(), "cabrank.yml: was read at the start"), "got %v", err)
	if _, err := Merge(without, with); err != nil {
		t.Error(err)
	}
}

// Every key finds its own value again: one that differs is told, and taken.
func TestDiffAndMergeKnowEveryKey(t *testing.T) {
	standard := mustLoad(t, sources(nil))
	for _, key := range Keys() {
		other := *standard
		other.origins = maps.Clone(standard.origins)
		if found := key.changes(standard, &other); len(found) != 0 {
			t.Errorf("%s differs from itself: %v", key.Name, found)
		}
		key.take(&other, standard)
		if found := Diff(standard, &other); len(found) != 0 {
			t.Errorf("%s taken over makes a difference: %v", key.Name, found)
		}
	}
}
