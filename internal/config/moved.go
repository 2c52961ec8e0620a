package config

import (
	"fmt"
	"strings"
)

// moved are the names that keys had once, and what has become of each. They are
// answered with a line, wherever they are written; gruf-relay's are taken.
func moved() map[string]string {
	return map[string]string{
		"server.reuse_port":     "is gone: now listen: HOST:PORT shared",
		"hooks.timeout":         "is gone: now fixed at workers.boot_timeout",
		"probes.host":           "is gone: now probes: HOST:PORT",
		"metrics.host":          "is gone: now metrics: HOST:PORT",
		"metrics.per_worker":    "is gone: now metrics.gauges: per_worker",
		"recycle.cgroup_memory": "is gone: now recycle.memory, as in 90%",
		"shards":                "is gone: now fixed at the usable CPUs",
		"slots_max":             "is gone: now slots: MIN-MAX",
		"slots_min":             "is gone: now slots: MIN-MAX",
		"upgrade_workers":       "is gone: now cabrank upgrade --upgrade-workers N",
		"warm_up.timeout":       "is gone: now fixed at workers.boot_timeout",
		"workers.max":           "is gone: now workers: MIN-MAX",
		"workers.max_draining":  "is gone: now fixed at 1",
		"workers.min":           "is gone: now workers: MIN-MAX",
		"workers.slots_max":     "is gone: now workers.slots: MIN-MAX",
		"workers.slots_min":     "is gone: now workers.slots: MIN-MAX",
	}
}

// whereMoved says what has become of the key that a variable or a flag was for, "" if
// there never was one.
func whereMoved(name string) string {
	plain := strings.NewReplacer(".", "_", "-", "_")
	name = strings.ToLower(plain.Replace(strings.TrimPrefix(name, prefix)))
	for key, now := range moved() {
		if plain.Replace(key) == name {
			return now
		}
	}
	for _, key := range Keys() {
		for _, part := range key.parts() {
			if key.isSingle() && plain.Replace(part.name) == name {
				return fmt.Sprintf("is gone: now %s: {%s: ...}", key.Name, last(part.name))
			}
		}
	}
	return ""
}
