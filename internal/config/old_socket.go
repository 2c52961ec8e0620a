package config

import (
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/strictyaml"
)

// The keys of two servers of Redis in place of one.
const oldRedis, oldCalls, oldEvents = "redis.addr", "redis.caller.addr", "redis.pubsub.addr"

// oldKeys are the keys of the old server of juggler.0 by the flags that they are now; those of
// none have no effect.
func oldKeys() map[string]string {
	return map[string]string{
		"redis": oldRedis + " " + oldCalls + " " + oldEvents, "call-cap": "caller_broker.call_cap",
		"listen": "server.addr", "path": "server.paths", "origin": "server.whitelisted_origins",
		"allow-empty-subprotocol": "server.allow_empty_subprotocol", "close-uri": "server.close_uri",
		"read-limit": "server.read_limit", "write-limit": "server.write_limit",
		"read-timeout": "server.read_timeout", "write-timeout": "server.write_timeout",
		"": "caller_broker.blocking_timeout redis.max_active redis.max_idle redis.idle_timeout redis.caller.max_active redis.caller.max_idle " +
			"redis.caller.idle_timeout redis.pubsub.max_active redis.pubsub.max_idle redis.pubsub.idle_timeout " +
			"server.max_header_bytes server.read_buffer_size server.write_buffer_size server.handshake_timeout " +
			"server.acquire_write_lock_timeout server.panic_uri server.slow_process_msg_threshold",
	}
}

// oldSocketKeys returns the keys that the old server knew: those of the flags that they are
// now, under their old names, and those without one.
func oldSocketKeys() (keys []Key) {
	for _, key := range append(SocketFlags(), Key{}) {
		for name := range strings.FieldsSeq(oldKeys()[key.Flag]) {
			old := key
			old.Name, old.Aliases, old.Of = name, nil, key.Name
			keys = append(keys, old)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i].Name < keys[j].Name })
	return keys
}

// readOld reads the configuration file of the old server, and warns of the keys that have no
// counterpart here.
func (c *Config) readOld(name string, sources Sources) Faults {
	content, err := sources.ReadFile(name)
	if err != nil {
		return Faults{byFlag(ConfigFlag).unreadable(name, err)}
	}
	c.File = name
	c.Socket.Redis, c.origins["socket.redis"] = ":6379", Origin{Place: name} // as it was: the old server never is without
	all, root := parseTable(name, content, oldSocketKeys())
	var settings []setting
	var idle []string
	redis := map[string]setting{}
	for _, s := range all {
		switch {
		case s.key.Flag == "":
			idle = append(idle, s.key.Name)
		case oldNothing(s.value):
		case s.key.Flag == "redis":
			redis[s.key.Name] = s
		default:
			s.value.Replace(s.key.oldText)
			settings = append(settings, s)
		}
	}
	if idle != nil {
		c.Warnings = append(c.Warnings, "keys of the file have no effect here, see docs/juggler.md: "+strings.Join(idle, " "))
	}
	return append(c.apply(append(settings, oneRedis(redis)...)), root.Faults()...)
}

// oneRedis wants one address, or one for calls and one for events.
func oneRedis(of map[string]setting) []setting {
	both, isBoth := of[oldRedis]
	calls, events := of[oldCalls], of[oldEvents]
	switch {
	case isBoth && len(of) == 1:
		return []setting{both}
	case !isBoth && calls.value.Alone() && events.value.Alone():
		calls.value.Replace(func(text string) string { return text + " " + events.value.Value() })
		return []setting{calls}
	}
	for _, name := range []string{oldRedis, oldCalls, oldEvents} {
		if s, given := of[name]; given {
			s.value.Fault("", "is one address too many, or one is missing", oldRedis+" alone, or one address for each of "+oldCalls+" and "+oldEvents)
		}
	}
	return nil
}

// oldNothing reports whether a value, or each in a list, sets nothing: a zero was no limit,
// and now the bound of the flag holds.
func oldNothing(n strictyaml.Node) bool {
	if items := n.Items(); items != nil {
		return !slices.ContainsFunc(items, func(item strictyaml.Node) bool { return !oldNothing(item) })
	}
	return !n.Given() || n.Alone() && slices.Contains([]string{"", none, "0", "0s"}, n.Value())
}

// oldText is a text as the key takes it now: of durations in nanoseconds, as Go has them, with
// a unit.
func (k Key) oldText(text string) string {
	ns, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == "":
		return none
	case err == nil && strings.HasSuffix(k.Name, "_timeout"):
		return showDuration(time.Duration(ns))
	}
	return text
}
