package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
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

// oldFlags are the flags that keys of the old server are now.
func oldFlags() map[string]string {
	return map[string]string{
		"redis.addr": "redis", oldCalls: "redis", oldEvents: "redis", "caller_broker.call_cap": "call-cap",
		"server.addr": "listen", "server.paths": "path", "server.whitelisted_origins": "origin",
		"server.allow_empty_subprotocol": "allow-empty-subprotocol", "server.close_uri": "close-uri",
		"server.read_limit": "read-limit", "server.write_limit": "write-limit",
		"server.read_timeout": "read-timeout", "server.write_timeout": "write-timeout",
	}
}

// oldIdle are the keys of the old server that have no effect.
func oldIdle() (names []string) {
	for _, section := range []string{"redis.", "redis.caller.", "redis.pubsub."} {
		names = append(names, section+"max_active", section+"max_idle", section+"idle_timeout")
	}
	return append(names, "caller_broker.blocking_timeout", "server.max_header_bytes", "server.read_buffer_size",
		"server.write_buffer_size", "server.handshake_timeout", "server.acquire_write_lock_timeout",
		"server.panic_uri", "server.slow_process_msg_threshold")
}

// LoadOldSocket reads the file.
//
// Errors: Faults, with a line for each key that is unknown or has another value than its
// flag may: the old server passed over them.
func LoadOldSocket(name string, readFile func(string) ([]byte, error)) (OldSocket, error) {
	content, err := readFile(name)
	if err != nil {
		what := fmt.Sprintf("cannot read %s: %s", quote(name), cause(err))
		return OldSocket{}, Faults{{Origin: Origin{Flag: ConfigFlag}, What: what, Allowed: "a readable YAML file"}}
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
	if faults := faultsIn(root, Origin{File: name}); len(faults) > 0 {
		return OldSocket{}, faults
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

// oldSocketKeys returns the keys that the old server knew: those of the flags that they are
// now, under their old names, and those without one, which have no effect.
func oldSocketKeys() (keys []Key) {
	for _, name := range slices.Sorted(maps.Keys(oldFlags())) {
		for _, key := range SocketFlags() {
			if key.Flag == oldFlags()[name] {
				key.Name, key.Aliases = name, nil
				keys = append(keys, key)
			}
		}
	}
	for _, name := range oldIdle() {
		keys = append(keys, Key{Name: name})
	}
	return keys
}
