package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// OldSocket is what the configuration file of the old server of juggler.0 says.
type OldSocket struct {
	// Flags are those of cabrank socket serve that say the same, by name without dashes.
	// A zero, which was no limit, sets none: the bound of the flag holds.
	Flags map[string]string
	// Idle are the keys that have no counterpart here.
	Idle []string
}

// LoadOldSocket reads the file.
//
// Errors: Faults, with a line for each key that is unknown or has another value than it
// may: the old server passed over them.
func LoadOldSocket(name string, readFile func(string) ([]byte, error)) (OldSocket, error) {
	content, err := readFile(name)
	if err != nil {
		what := fmt.Sprintf("cannot read %s: %s", quote(name), cause(err))
		return OldSocket{}, Faults{{Origin: Origin{Flag: ConfigFlag}, What: what, Allowed: "a readable YAML file"}}
	}
	settings, root := parseTable(name, content, oldSocketKeys())
	old := OldSocket{Flags: map[string]string{}}
	texts := map[string]string{}
	for _, s := range settings {
		field := s.key.field(nil)
		store(s.key.kind, field, s.value, places{})
		text := s.key.kind.show(field)
		texts[s.key.Name] = text
		switch {
		case s.key.Flag == "":
			old.Idle = append(old.Idle, s.key.Name)
		case !slices.Contains([]string{"0", "0s", none, `""`}, text):
			old.Flags[s.key.Flag] = text
		}
	}
	faults := faultsIn(root, Origin{File: name})
	if len(faults) == 0 {
		faults = oldRedis(settings)
	}
	if len(faults) > 0 {
		return OldSocket{}, faults
	}
	switch _, given := old.Flags["redis"]; {
	case !given:
		old.Flags["redis"] = ":6379" // as it was: the old server never is without
	case texts[oldCalls] != "":
		old.Flags["redis"] = texts[oldCalls] + " " + texts[oldEvents]
	}
	return old, nil
}

// The keys of two servers of Redis in place of one.
const oldCalls, oldEvents = "redis.caller.addr", "redis.pubsub.addr"

// oldRedis wants one address, or one for calls and one for events.
func oldRedis(settings []setting) Faults {
	at := map[string]Origin{}
	for _, s := range settings {
		at[s.key.Name] = s.origin
	}
	both, hasCalls, hasEvents := at["redis.addr"], at[oldCalls], at[oldEvents]
	unset := Origin{}
	switch {
	case both != unset && (hasCalls != unset || hasEvents != unset):
		return Faults{{both, "redis.addr", "is given beside " + oldCalls + " or " + oldEvents, "it alone, or both of them"}}
	case hasCalls != unset && hasEvents == unset:
		return Faults{{hasCalls, oldCalls, "is given without " + oldEvents, "both, or redis.addr"}}
	case hasEvents != unset && hasCalls == unset:
		return Faults{{hasEvents, oldEvents, "is given without " + oldCalls, "both, or redis.addr"}}
	}
	return nil
}

// oldSocketKeys returns the keys that the old server knew, with the flag that each of
// them is now; those without one have no effect.
func oldSocketKeys() []Key {
	as := func(k plain, of any) text {
		return text{clean: func(raw string) (string, error) { return raw, k.set(of, raw) }, legal: k.allowed()}
	}
	words := text{clean: func(raw string) (string, error) { return raw, nil }, legal: "text"}
	address, bytes := text{clean: formed("secret", "has a control character"), legal: "an address"}, as(plain{`range:"0..1073741824"`}, new(int))
	duration := text{clean: cleanOldDuration, legal: "a duration such as 10s, or nanoseconds"}
	keys := []Key{
		{Name: "redis.addr", Flag: "redis", kind: address},
		{Name: oldCalls, Flag: "redis", kind: address},
		{Name: oldEvents, Flag: "redis", kind: address},
		{Name: "caller_broker.blocking_timeout", kind: duration},
		{Name: "caller_broker.call_cap", Flag: "call-cap", kind: as(plain{`range:"0..1000000000"`}, new(int))},
		{Name: "server.addr", Flag: "listen", kind: words},
		{Name: "server.paths", Flag: "path", kind: listOf(cleanPath, "paths that begin with /", 100)},
		{Name: "server.whitelisted_origins", Flag: "origin", kind: listOf(oldOrigin, "origins such as https://shop.example, or \"\"", 100)},
		{Name: "server.allow_empty_subprotocol", Flag: "allow-empty-subprotocol", kind: as(plain{}, new(bool))},
		{Name: "server.close_uri", Flag: "close-uri", kind: words},
		{Name: "server.read_limit", Flag: "read-limit", kind: bytes},
		{Name: "server.write_limit", Flag: "write-limit", kind: bytes},
		{Name: "server.read_timeout", Flag: "read-timeout", kind: duration},
		{Name: "server.write_timeout", Flag: "write-timeout", kind: duration},
		{Name: "server.max_header_bytes", kind: bytes},
		{Name: "server.read_buffer_size", kind: bytes},
		{Name: "server.write_buffer_size", kind: bytes},
		{Name: "server.handshake_timeout", kind: duration},
		{Name: "server.acquire_write_lock_timeout", kind: duration},
		{Name: "server.panic_uri", kind: words},
		{Name: "server.slow_process_msg_threshold", kind: duration},
	}
	for _, section := range []string{"redis.", "redis.caller.", "redis.pubsub."} {
		for _, name := range []string{"max_active", "max_idle", "idle_timeout"} {
			keys = append(keys, Key{Name: section + name, kind: words})
		}
	}
	for i, key := range keys {
		_, several := key.kind.(itemized)
		keys[i].field = func(*Config) any {
			if several {
				return new([]string)
			}
			return new(string)
		}
	}
	return keys
}

// oldOrigin takes an origin where callers that send none were "".
func oldOrigin(origin string) (string, error) {
	return formed("origin", "%s is not an origin")(cmp.Or(origin, none))
}

// cleanOldDuration accepts a duration of the old file: Go's notation, or nanoseconds.
func cleanOldDuration(text string) (string, error) {
	d, err := time.ParseDuration(text)
	if ns, notNumber := strconv.ParseInt(text, 10, 64); notNumber == nil {
		d, err = time.Duration(ns), nil
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("%s is not a duration", quote(text))
	case d < 0:
		return "", errors.New("is below zero")
	}
	return showDuration(d), nil
}
