package config

import (
	"slices"
	"strings"
	"testing"
)

// What makes no sense of the rank's settings is told in one line, with what was
// probably meant where that is near.
func TestRankFaults(t *testing.T) {
	const (
		policies = "late_binding, random, round_robin, least_request, p2c, peak_ewma, ring_hash"
		header   = "a header or metadata key in lower case, :authority, or none"
		caller   = "peer, authority, none, metadata:NAME"
	)
	tests := []struct{ name, file, want string }{
		{"policy, near one", "balance: late_bindng", `balance: "late_bindng" is unknown; did you mean late_binding? allowed: ` + policies},
		{"policy, near none", "balance: magic", `balance: "magic" is unknown; allowed: ` + policies},
		{"slots in words", "slots: many", `workers.slots: "many" is not a whole number; allowed: 1 to 100000, or two of them as in 2-16, or auto: 1-200`},
		{"no slots", "slots: 0", "workers.slots: 0 is out of range; allowed: 1 to 100000, or two of them as in 2-16, or auto: 1-200"},
		{"stream slots", "stream_slots: 0", "stream_slots: 0 is out of range; allowed: 1 to 100000000, or auto"},
		{"cancel", "on_cancel: finnish", `on_cancel: "finnish" is unknown; did you mean finish? allowed: auto, hold, free, finish`},
		{"hops", "max_hops: 0", "max_hops: 0 is out of range; allowed: 1 to 255"},
		{"stall", "stall_timeout: 10ms", "stall_timeout: 10ms is out of range; allowed: 1s to 24h, or 0s: for ever"},
		{"hang", "hang_timeout: 100ms", "hang_timeout: 100ms is out of range; allowed: 1s to 24h, or 0s: never"},
		{"absorb", "absorb_bytes: 1GiB", "absorb_bytes: 1GiB is out of range; allowed: 0 to 64MiB"},
		{"shed", "queue: {shed: sometimes}", `queue.shed: "sometimes" is neither true nor false; allowed: true or false`},
		{"rate below any", "limits: {rate_per_key: 0.001}", "limits.rate_per_key: 0.001 is out of range; allowed: 0.01 to 1000000, or 0: no limit"},
		{"negative rate", "limits: {rate_per_key: -1}", "limits.rate_per_key: -1 is out of range; allowed: 0.01 to 1000000, or 0: no limit"},
		{"rate as no number", "limits: {rate_per_key: nan}", `limits.rate_per_key: "nan" is not a number; allowed: 0.01 to 1000000, or 0: no limit`},
		{"rate with a unit", "limits: {rate_per_key: 5/s}", `limits.rate_per_key: "5/s" is not a number; allowed: 0.01 to 1000000, or 0: no limit`},
		{"endless rate", "limits: {rate_per_key: 1e999}", `limits.rate_per_key: "1e999" is out of range; allowed: 0.01 to 1000000, or 0: no limit`},
		{"rate of many digits", "limits: {rate_per_key: 1e18}", "limits.rate_per_key: 1e+18 is out of range; allowed: 0.01 to 1000000, or 0: no limit"},
		{"burst", "limits: {burst_per_key: 0}", "limits.burst_per_key: 0 is out of range; allowed: 1 to 1000000, or auto"},
		{"calls per key", "limits: {calls_per_key: -1}", "limits.calls_per_key: -1 is out of range; allowed: 0 to 1000000"},
		{"budget above all calls", "retry_budget: {ratio: 10}", "retry_budget.ratio: 10 is out of range; allowed: 0 to 1"},
		{"budget per second", "retry_budget: {per_second: 1e9}", "retry_budget.per_second: 1000000000 is out of range; allowed: 0 to 100000"},

		{"header in upper case", "balance_key: X-User", `balance_key: "X-User" is not in lower case; did you mean x-user? allowed: ` + header},
		{"header that is none", "balance_key: x user", `balance_key: "x user" is not the name of a header; allowed: ` + header},
		{"pseudo header", "balance_key: ':path'", `balance_key: ":path" is a pseudo header; allowed: ` + header},
		{"authority without colon", "balance_key: authority", `balance_key: "authority" is not sent by callers of HTTP/2; did you mean :authority? allowed: ` + header},
		{"header of gRPC", "balance_key: grpc-timeout", `balance_key: "grpc-timeout" belongs to the protocol, not to the call; allowed: ` + header},
		{"header of the connection", "balance_key: te", `balance_key: "te" belongs to the protocol, not to the call; allowed: ` + header},
		{"endless header", "balance_key: " + strings.Repeat("x", 101), `balance_key: "` + strings.Repeat("x", 60) + `"... is longer than 100 characters; allowed: ` + header},

		{"key, near one", "fair: {key: pear}", `fair.key: "pear" is unknown; did you mean peer? allowed: ` + caller},
		{"key without its mark", "fair: {key: x-tenant}", `fair.key: "x-tenant" is unknown; did you mean metadata:x-tenant? allowed: ` + caller},
		{"key, near nothing", "fair: {key: 'a b'}", `fair.key: "a b" is unknown; allowed: ` + caller},
		{"metadata without name", "fair: {key: metadata}", "fair.key: metadata needs a name, as in metadata:x-tenant; allowed: " + caller},
		{"metadata with an empty name", "fair: {key: 'metadata:'}", "fair.key: a name is empty; allowed: " + caller},
		{"binary metadata", "fair: {key: 'metadata:x-id-bin'}", `fair.key: "x-id-bin" is binary metadata, whose values cannot be written down; allowed: ` + caller},
		{"metadata of gRPC", "fair: {key: 'metadata:grpc-timeout'}", `fair.key: "grpc-timeout" belongs to the protocol, not to the call; allowed: ` + caller},
		{"metadata in upper case", "fair: {key: 'metadata:X-Tenant'}", `fair.key: "X-Tenant" is not in lower case; did you mean x-tenant? allowed: ` + caller},
		{"authority as metadata", "fair: {key: 'metadata::authority'}", `fair.key: ":authority" is not metadata; did you mean authority? allowed: ` + caller},

		{"ring without key", "balance: ring_hash", "balance: ring_hash needs balance_key, what it hashes; allowed: balance_key: a header or metadata key"},
		{"fewest above most", "slots: 20-10", "workers.slots: 20 is above 10; allowed: 1 to 100000, or two of them as in 2-16, or auto: 1-200"},
		{"more streams than slots", "slots: 2\nstream_slots: 9", "2: stream_slots: 9 is more than all slots, 8 (workers.count 4 x workers.slots 2); allowed: 1 to 8, or auto"},
		{"more streams than adapting slots", "slots: auto\nstream_slots: 801",
			"2: stream_slots: 801 is more than all slots, 800 (workers.count 4 x workers.slots 200); allowed: 1 to 800, or auto"},
		{"more streams than slots of upstreams", "upstreams: [a:1]\nstream_slots: 6",
			"2: stream_slots: 6 is more than all slots, 5 (upstreams 1 x workers.slots 5); allowed: 1 to 5, or auto"},
		{"burst below its rate", "limits:\n  rate_per_key: 500\n  burst_per_key: 4",
			"3: limits.burst_per_key: 4 is less than limits.rate_per_key, 500 a second (cabrank.yml:2), brings in 10ms; allowed: 5 to 1000000, or auto"},
		{"absorb above the total", "buffer_total: 2MiB\nabsorb_bytes: 3MiB",
			"2: absorb_bytes: 3MiB for one call is above buffer_total, 2MiB for all (cabrank.yml:1); allowed: 0 to 2MiB"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			wantFault(t, test.file, test.want)
		})
	}
}

// wantFault holds that a file has one fault; want begins with the line, if that
// is not the first.
func wantFault(t *testing.T, file, want string) {
	t.Helper()
	if want[0] < '0' || want[0] > '9' {
		want = "1: " + want
	}
	got := faultsOf(t, sources(map[string]string{"cabrank.yml": file}))
	if want = "cabrank.yml:" + want; !slices.Equal(got, []string{want}) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// What is written and idle is pointed out and no fault; what nobody wrote is
// not mentioned.
func TestSettingsWithoutEffect(t *testing.T) {
	for file, want := range map[string]string{
		"balance_key: x-user":                         "cabrank.yml:1: balance_key has no effect: only ring_hash uses it, and balance is late_binding (default)",
		"balance: p2c\nbalance_key: ':authority'":     "cabrank.yml:2: balance_key has no effect: only ring_hash uses it, and balance is p2c (cabrank.yml:1)",
		"limits: {burst_per_key: 5}":                  "cabrank.yml:1: limits.burst_per_key has no effect: limits.rate_per_key is 0 (default)",
		"balance: ring_hash\nbalance_key: x-user":     "",
		"fair:\n  key: none\n  weights: {a: 2}":       "cabrank.yml:3: fair.weights has no effect: fair.key is none, so that all callers are one (cabrank.yml:2)",
		"fair.key: none\nlanes:\n  a:\n    keys: [k]": "cabrank.yml:4: lanes[a].keys has no effect: fair.key is none, so that all callers are one (cabrank.yml:1)",
		"retry_budget: {ratio: 0, per_second: 0}\nmethods:\n  /a.B/C: {idempotent: true, retries: 1}":       "cabrank.yml:3: methods[/a.B/C].retries has no effect: retry_budget is 0 (cabrank.yml:1)",
		"retry_budget: {ratio: 0, per_second: 0}\nmethods:\n  /a.B/C: {idempotent: true, hedge_after: 5ms}": "cabrank.yml:3: methods[/a.B/C].hedge_after has no effect: retry_budget is 0 (cabrank.yml:1)",
	} {
		got := mustLoad(t, sources(map[string]string{"cabrank.yml": file})).Warnings
		if strings.Join(got, "\n") != want {
			t.Errorf("%s\ngives %q, want %q", file, got, want)
		}
	}
}

// A port of which sockets alone need a token is pointed out where others reach it.
func TestOpenCalls(t *testing.T) {
	const want = ":1: socket.auth_secret is for sockets alone: calls over gRPC at "
	for file, where := range map[string]string{
		"socket: {path: [/ws], auth_secret: s}":                            ":8080",
		"socket: {path: [/ws], auth_secret: s}\nserver: {host: 10.0.0.1}":  "10.0.0.1:8080",
		"socket: {path: [/ws], auth_secret: s}\nserver: {host: 127.0.0.1}": "",
		"socket: {path: [/ws]}":                                            "",
	} {
		got := strings.Join(mustLoad(t, sources(map[string]string{"cabrank.yml": file})).Warnings, "\n")
		if where == "" && got != "" || where != "" && !strings.Contains(got, want+where+" need no token") {
			t.Errorf("%s\ngives %q", file, got)
		}
	}
}
