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
		policies = "late_binding, ring_hash:NAME of a header or metadata key in lower case, or of :authority"
		caller   = "peer, authority, none, metadata:NAME"
	)
	tests := []struct{ name, file, want string }{
		{"policy, near one", "balance: late_bindng", `balance: "late_bindng" is unknown; did you mean late_binding? allowed: ` + policies},
		{"policy, near none", "balance: magic", `balance: "magic" is unknown; allowed: ` + policies},
		{"policy of before", "queue.length: 5\nbalance: Round_Robin", `2: balance: "Round_Robin" is gone: it let calls wait for one worker while others were idle; leave balance out; allowed: ` + policies},
		{"slots in words", "slots: many", `workers.slots: "many" is not a number; allowed: 1 to 100000, or two of them as in 2-16, or auto: 1-200`},
		{"no slots", "slots: 0", "workers.slots: \"0\" is out of range; allowed: 1 to 100000, or two of them as in 2-16, or auto: 1-200"},
		{"stream slots", "stream_slots: 0", "stream_slots: \"0\" is out of range; allowed: 1 to 100000000, or auto"},
		{"cancel", "on_cancel: finnish", `on_cancel: "finnish" is unknown; did you mean finish? allowed: auto, hold, free, finish`},
		{"stall", "stall_timeout: 10ms", "stall_timeout: \"10ms\" is out of range; allowed: 1s to 24h, or 0: for ever"},
		{"hang", "hang_timeout: 100ms", "hang_timeout: \"100ms\" is out of range; allowed: 1s to 24h, or 0: never"},
		{"rate below any", "limits: {calls_per_second: 0.001}", "limits.calls_per_second: \"0.001\" is out of range; allowed: 0.01 to 1000000, or 0: no limit"},
		{"negative rate", "limits: {calls_per_second: -1}", "limits.calls_per_second: \"-1\" is out of range; allowed: 0.01 to 1000000, or 0: no limit"},
		{"rate as no number", "limits: {calls_per_second: nan}", `limits.calls_per_second: "nan" is not a number; allowed: 0.01 to 1000000, or 0: no limit`},
		{"rate with a unit", "limits: {calls_per_second: 5/s}", `limits.calls_per_second: "5/s" is not a number; allowed: 0.01 to 1000000, or 0: no limit`},
		{"endless rate", "limits: {calls_per_second: 1e999}", `limits.calls_per_second: "1e999" is out of range; allowed: 0.01 to 1000000, or 0: no limit`},
		{"rate of many digits", "limits: {calls_per_second: 1e18}", "limits.calls_per_second: \"1e18\" is out of range; allowed: 0.01 to 1000000, or 0: no limit"},
		{"calls of a caller", "limits: {calls: -1}", "limits.calls: \"-1\" is out of range; allowed: 0 to 1000000"},

		{"header in upper case", "balance: ring_hash:X-User", `balance: "X-User" is not in lower case; did you mean x-user? allowed: ` + policies},
		{"header that is none", "balance: ring_hash:x user", `balance: "x user" is not the name of a header; allowed: ` + policies},
		{"pseudo header", "balance: 'ring_hash::path'", `balance: ":path" is a pseudo header; allowed: ` + policies},
		{"authority without colon", "balance: ring_hash:authority", `balance: "authority" is not sent by callers of HTTP/2; did you mean :authority? allowed: ` + policies},
		{"header of gRPC", "balance: ring_hash:grpc-timeout", `balance: "grpc-timeout" belongs to the protocol, not to the call; allowed: ` + policies},
		{"header of the connection", "balance: ring_hash:te", `balance: "te" belongs to the protocol, not to the call; allowed: ` + policies},
		{"endless header", "balance: ring_hash:" + strings.Repeat("x", 101), `balance: "` + strings.Repeat("x", 60) + `"... is longer than 100 characters; allowed: ` + policies},

		{"ring without key", "balance: ring_hash", "balance: ring_hash needs what it hashes, as in ring_hash:x-user; allowed: " + policies},
		{"ring in capitals without key", "balance: Ring_Hash", "balance: ring_hash needs what it hashes, as in ring_hash:x-user; allowed: " + policies},
		{"key of before", "balance_key: x-user", "balance_key: now balance: ring_hash:NAME"},

		{"key, near one", "fair: {key: pear}", `fair.key: "pear" is unknown; did you mean peer? allowed: ` + caller},
		{"key without its mark", "fair: {key: x-tenant}", `fair.key: "x-tenant" is unknown; did you mean metadata:x-tenant? allowed: ` + caller},
		{"key, near nothing", "fair: {key: 'a b'}", `fair.key: "a b" is unknown; allowed: ` + caller},
		{"metadata without name", "fair: {key: metadata}", "fair.key: metadata needs a name, as in metadata:x-tenant; allowed: " + caller},
		{"metadata with an empty name", "fair: {key: 'metadata:'}", "fair.key: \"\" is not the name of a header; allowed: " + caller},
		{"binary metadata", "fair: {key: 'metadata:x-id-bin'}", `fair.key: "x-id-bin" is binary metadata, whose values cannot be written down; allowed: ` + caller},
		{"metadata of gRPC", "fair: {key: 'metadata:grpc-timeout'}", `fair.key: "grpc-timeout" belongs to the protocol, not to the call; allowed: ` + caller},
		{"metadata in upper case", "fair: {key: 'metadata:X-Tenant'}", `fair.key: "X-Tenant" is not in lower case; did you mean x-tenant? allowed: ` + caller},
		{"authority as metadata", "fair: {key: 'metadata::authority'}", `fair.key: ":authority" is not metadata; did you mean authority? allowed: ` + caller},

		{"fewest above most", "slots: 20-10", "workers.slots: 20 is above 10; allowed: 1 to 100000, or two of them as in 2-16, or auto: 1-200"},
		{"more streams than slots", "slots: 2\nstream_slots: 9", "2: stream_slots: 9 is more than all slots, 8 (workers.count 4 x workers.slots 2); allowed: 1 to 8, or auto"},
		{"more streams than slots of fewer workers than CPUs", "workers: 1-3\nslots: 1\nstream_slots: 4", "3: stream_slots: 4 is more than all slots, 3 (workers.count 3 x workers.slots 1); allowed: 1 to 3, or auto"},
		{"more streams than adapting slots", "slots: auto\nstream_slots: 801",
			"2: stream_slots: 801 is more than all slots, 800 (workers.count 4 x workers.slots 200); allowed: 1 to 800, or auto"},
		{"more streams than slots of upstreams", "upstreams: [a:1]\nstream_slots: 6",
			"2: stream_slots: 6 is more than all slots, 5 (upstreams 1 x workers.slots 5); allowed: 1 to 5, or auto"},
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
		"balance: ring_hash:x-user":                   "",
		"fair:\n  key: none\n  weights: {a: 2}":       "cabrank.yml:3: fair.weights has no effect: fair.key is none, so that all callers are one (cabrank.yml:2)",
		"fair.key: none\nlanes:\n  a:\n    keys: [k]": "cabrank.yml:4: lanes[a].keys has no effect: fair.key is none, so that all callers are one (cabrank.yml:1)",
	} {
		got := mustLoad(t, sources(map[string]string{"cabrank.yml": file})).Warnings
		if strings.Join(got, "\n") != want {
			t.Errorf("%s\ngives %q, want %q", file, got, want)
		}
	}
}

// A port of which sockets alone need a token is pointed out where others reach it.
func TestOpenCalls(t *testing.T) {
	const want = ":1: auth is for sockets alone: calls over gRPC at "
	for file, where := range map[string]string{
		"auth: {secret: s}\nsocket: {path: [/ws]}":                         ":8080",
		"auth: {secret: s}\nsocket: {path: [/ws]}\nlisten: 10.0.0.1:8080":  "10.0.0.1:8080",
		"auth: {secret: s}\nsocket: {path: [/ws]}\nlisten: 127.0.0.1:8080": "",
		"socket: {path: [/ws]}":                                            "",
	} {
		got := strings.Join(mustLoad(t, sources(map[string]string{"cabrank.yml": file})).Warnings, "\n")
		if where == "" && got != "" || where != "" && !strings.Contains(got, want+where+" need no token") {
			t.Errorf("%s\ngives %q", file, got)
		}
	}
}
