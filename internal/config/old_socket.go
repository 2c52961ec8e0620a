package config

import (
	"errors"
	"fmt"
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
	settings, faults := parseTable(name, content, oldSocketKeys())
	old, both := OldSocket{Flags: map[string]string{}}, map[string]string{}
	for _, s := range settings {
		field := s.key.field(nil)
		if err := s.value.store(s.key.kind, field); err != nil {
			faults = append(faults, Fault{s.origin, s.key.Name, err.Error(), s.key.Allowed()})
			continue
		}
		switch text := s.oldText(field); {
		case s.key.Flag == "":
			old.Idle = append(old.Idle, s.key.Name)
		case s.key.Name == "redis.caller.addr" || s.key.Name == "redis.pubsub.addr":
			both[s.key.Name] = text
			old.Flags[s.key.Flag] = both["redis.caller.addr"] + " " + both["redis.pubsub.addr"]
		case text != "":
			old.Flags[s.key.Flag] = text
		}
	}
	if len(faults) == 0 {
		faults = oldRedis(settings)
	}
	if len(faults) > 0 {
		return OldSocket{}, faults
	}
	if _, given := old.Flags["redis"]; !given {
		old.Flags["redis"] = ":6379" // as it was: the old server never is without
	}
	return old, nil
}

// oldText returns what the flag is set to, "" for nothing.
func (s setting) oldText(field any) (text string) {
	switch value := field.(type) {
	case *string:
		text = *value
	case *[]string:
		text = s.key.kind.show(value)
	}
	switch text {
	case "0", "0s", none:
		return ""
	}
	return text
}

// oldRedis wants one address, or one for calls and one for events.
func oldRedis(settings []setting) Faults {
	at := map[string]Origin{}
	for _, s := range settings {
		at[s.key.Name] = s.origin
	}
	const calls, events = "redis.caller.addr", "redis.pubsub.addr"
	both, hasCalls, hasEvents := at["redis.addr"], at[calls], at[events]
	unset := Origin{}
	switch {
	case both != unset && (hasCalls != unset || hasEvents != unset):
		return Faults{{both, "redis.addr", "is given beside " + calls + " or " + events, "it alone, or both of them"}}
	case hasCalls != unset && hasEvents == unset:
		return Faults{{hasCalls, calls, "is given without " + events, "both, or redis.addr"}}
	case hasEvents != unset && hasCalls == unset:
		return Faults{{hasEvents, events, "is given without " + calls, "both, or redis.addr"}}
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
	address, bytes := text{cleanSecret, "an address", true, true}, as(plain{`range:"0..1073741824"`}, new(int))
	duration := text{clean: cleanOldDuration, legal: "a duration such as 10s, or nanoseconds"}
	table := []struct {
		name, flag string
		kind       kind
	}{
		{"redis.addr", "redis", address},
		{"redis.caller.addr", "redis", address},
		{"redis.pubsub.addr", "redis", address}, // behind that of calls
		{"caller_broker.blocking_timeout", "", duration},
		{"caller_broker.call_cap", "call-cap", as(plain{`range:"0..1000000000"`}, new(int))},
		{"server.addr", "listen", words},
		{"server.paths", "path", list{cleanPath, "paths that begin with /", 100}},
		{"server.whitelisted_origins", "origin", list{oldOrigin, "origins such as https://shop.example, or \"\"", 100}},
		{"server.allow_empty_subprotocol", "allow-empty-subprotocol", as(plain{}, new(bool))},
		{"server.close_uri", "close-uri", words},
		{"server.read_limit", "read-limit", bytes},
		{"server.write_limit", "write-limit", bytes},
		{"server.read_timeout", "read-timeout", duration},
		{"server.write_timeout", "write-timeout", duration},
		{"server.max_header_bytes", "", bytes},
		{"server.read_buffer_size", "", bytes},
		{"server.write_buffer_size", "", bytes},
		{"server.handshake_timeout", "", duration},
		{"server.acquire_write_lock_timeout", "", duration},
		{"server.panic_uri", "", words},
		{"server.slow_process_msg_threshold", "", duration},
	}
	for _, section := range []string{"redis.", "redis.caller.", "redis.pubsub."} {
		for _, name := range []string{"max_active", "max_idle", "idle_timeout"} {
			table = append(table, struct {
				name, flag string
				kind       kind
			}{section + name, "", words})
		}
	}
	keys := make([]Key, len(table))
	for i, row := range table {
		keys[i] = Key{Name: row.name, Flag: row.flag, kind: row.kind, field: func(*Config) any {
			if _, several := row.kind.(list); several {
				return new([]string)
			}
			return new(string)
		}}
	}
	return keys
}

// oldOrigin is cleanOrigin where callers that send none were "".
func oldOrigin(origin string) (string, error) {
	if origin == "" {
		return none, nil
	}
	return cleanOrigin(origin)
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
