package config

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/internal/strictyaml"
)

// OldSocket is what the configuration file of the old server of juggler.0 says.
type OldSocket struct {
	// Flags are those of cabrank socket serve that say the same, by name without dashes.
	// A zero, which was no limit, sets none: the bound of the flag holds.
	Flags map[string]string
	// Idle are the keys that have no counterpart here.
	Idle []string
}

// The keys of two servers of Redis in place of one.
const oldCalls, oldEvents = "redis.caller.addr", "redis.pubsub.addr"

// oldKeys are the keys of the old server by the flags that they are now; those of none have no
// effect.
func oldKeys() map[string]string {
	return map[string]string{
		"redis": strings.Join([]string{"redis.addr", oldCalls, oldEvents}, " "), "call-cap": "caller_broker.call_cap",
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
			key.Name, key.Aliases = name, nil
			keys = append(keys, key)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i].Name < keys[j].Name })
	return keys
}

// LoadOldSocket reads the file.
//
// Errors: Faults, with a line for each key that is unknown or has another value than its
// flag may: the old server passed over them.
func LoadOldSocket(name string, readFile func(string) ([]byte, error)) (OldSocket, error) {
	content, err := readFile(name)
	if err != nil {
		return OldSocket{}, Faults{byFlag(ConfigFlag).unreadable(name, err)}
	}
	settings, root := parseTable(name, content, oldSocketKeys())
	old, nodes := OldSocket{Flags: map[string]string{}}, map[string]strictyaml.Node{}
	for _, s := range settings {
		text := oldText(s.value)
		switch {
		case s.key.Flag == "":
			old.Idle = append(old.Idle, s.key.Name)
		case s.value.IsMap(), slices.ContainsFunc(s.value.Items(), func(item strictyaml.Node) bool { return !item.Alone() }):
			s.value.Fault("", "is a section, or has one in it, not a value", s.key.Allowed())
		case text != "":
			if err := s.key.kind.set(s.key.field(new(Config)), text); err != nil {
				s.value.Fault("", err.Error(), s.key.Allowed())
			}
			old.Flags[s.key.Flag], nodes[s.key.Name] = text, s.value
		}
	}
	old.oldRedis(nodes)
	if faults := root.Faults(); len(faults) > 0 {
		return OldSocket{}, Faults(faults)
	}
	return old, nil
}

// oldRedis wants one address, or one for calls and one for events.
func (o OldSocket) oldRedis(nodes map[string]strictyaml.Node) {
	switch both, calls, events := oldText(nodes["redis.addr"]), oldText(nodes[oldCalls]), oldText(nodes[oldEvents]); {
	case both != "" && calls+events != "":
		nodes["redis.addr"].Fault("", "is given beside "+oldCalls+" or "+oldEvents, "it alone, or both of them")
	case calls != "" && events == "":
		nodes[oldCalls].Fault("", "is given without "+oldEvents, "both, or redis.addr")
	case events != "" && calls == "":
		nodes[oldEvents].Fault("", "is given without "+oldCalls, "both, or redis.addr")
	case calls != "":
		o.Flags["redis"] = calls + " " + events
	case both == "":
		o.Flags["redis"] = ":6379" // as it was: the old server never is without
	}
}

// oldText returns what a flag is set to, "" for nothing: items with commas between them,
// "" among them as none, and durations in nanoseconds, as Go has them, with a unit.
func oldText(n strictyaml.Node) string {
	var texts []string
	for _, item := range append(n.Items(), n) {
		if item.Alone() {
			texts = append(texts, cmp.Or(item.Value(), none))
		}
	}
	text := strings.Join(texts, ", ")
	ns, err := strconv.ParseInt(text, 10, 64)
	switch {
	case text == none || text == "0" || text == "0s":
		return ""
	case err == nil && strings.HasSuffix(n.Key, "_timeout"):
		return showDuration(time.Duration(ns))
	}
	return text
}
