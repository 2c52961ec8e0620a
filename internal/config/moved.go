package config

import (
	"fmt"
	"strings"
)

// moved are the names that keys had once, and what has become of each. They are
// answered with a line, wherever they are written; gruf-relay's are taken.
func moved() map[string]string {
	return map[string]string{
		"absorb_bytes":                   "now fixed at 1MiB",
		"access_log.share":               "now access_log.sample",
		"access_log.slow":                "now fixed at 1s",
		"balance_key":                    "now balance: ring_hash:NAME",
		"dns.max_ttl":                    "now fixed at 5m",
		"dns.min_ttl":                    "now fixed at 1s",
		"hooks.timeout":                  "now fixed at workers.boot_timeout",
		"limits.buffer_per_connection":   "now fixed at 16MiB",
		"limits.burst_per_key":           "now fixed at the calls of one second",
		"limits.calls_per_key":           "now limits.calls",
		"limits.frame_size":              "now fixed at 16KiB",
		"limits.handshake_timeout":       "now fixed at 5s",
		"limits.header_timeout":          "now fixed at 10s",
		"limits.keepalive":               "now fixed at 5m",
		"limits.max_window":              "now fixed at 1MiB",
		"limits.rate_per_key":            "now limits.calls_per_second",
		"limits.resets_per_second":       "now fixed at 1000",
		"limits.window":                  "now fixed at 64KiB",
		"max_concurrent_streams":         "now fixed at 250",
		"max_header_list":                "now fixed at 64KiB",
		"max_hops":                       "now fixed at 16",
		"metrics.host":                   "now metrics: HOST:PORT",
		"metrics.per_worker":             "now metrics.gauges: per_worker",
		"probes.host":                    "now probes: HOST:PORT",
		"queue.newest_first":             "now fixed at true",
		"queue.shed":                     "now fixed at true",
		"recycle.cgroup_memory":          "now recycle.memory, as in 90%: bytes or a share, one of both",
		"refusals":                       "is gone: a worker has three threads for each slot, and refuses no call",
		"replay_bytes":                   "now fixed at 64KiB",
		"retry_budget":                   "now fixed at a tenth of all calls and 10 a second",
		"retry_budget.per_second":        "now fixed at 10",
		"retry_budget.ratio":             "now fixed at 0.1",
		"server.reuse_port":              "now listen: HOST:PORT shared",
		"shards":                         "now fixed at the usable CPUs",
		"slots_max":                      "now slots: MIN-MAX",
		"slots_min":                      "now slots: MIN-MAX",
		"socket.allow_empty_subprotocol": "now fixed at false",
		"socket.buffer_total":            "now fixed at 64MiB",
		"socket.descriptors":             "now descriptors",
		"socket.max_calls":               "now fixed at 1000",
		"socket.max_subscriptions":       "now fixed at 1000",
		"socket.ping":                    "now fixed at 30s",
		"socket.queue_bytes":             "now fixed at 256KiB",
		"socket.redis_pubsub":            "now the second address of socket.redis",
		"upgrade_workers":                "now cabrank upgrade --upgrade-workers N",
		"warm_up.timeout":                "now fixed at workers.boot_timeout",
		"workers.max":                    "now workers: MIN-MAX",
		"workers.max_draining":           "now fixed at 1",
		"workers.min":                    "now workers: MIN-MAX",
		"workers.slots_max":              "now workers.slots: MIN-MAX",
		"workers.slots_min":              "now workers.slots: MIN-MAX",
	}
}

// whereMoved says what has become of the key that a variable or a flag was for, "" if
// there never was one.
func whereMoved(name string) string {
	plain := strings.NewReplacer(".", "_", "-", "_")
	if name == prefix+"REDIS_PUBSUB" {
		name = "socket.redis_pubsub"
	}
	name = strings.ToLower(plain.Replace(strings.TrimPrefix(name, prefix)))
	for key, now := range moved() {
		if plain.Replace(key) == name {
			if strings.HasPrefix(now, "now fixed") {
				return "is gone: " + now
			}
			return now
		}
	}
	for _, key := range Keys() {
		for _, part := range key.parts() {
			if key.isSingle() && plain.Replace(part.name) == strings.TrimPrefix(name, "socket_") { // auth's were socket.auth_...
				return fmt.Sprintf("now %s: {%s: ...}", key.Name, last(part.name))
			}
		}
	}
	return ""
}
