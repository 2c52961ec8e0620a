package config

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

func loadOld(text string, environ ...string) (*Config, error) {
	return LoadSocket(map[string]string{ConfigFlag: "juggler.yml"}, sources(map[string]string{"juggler.yml": text}, environ...))
}

// Every key of the old file says what its flag says.
func TestOldSocket(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                                {"redis": ":6379"},
		"# nothing\nserver:\nredis:\n":    {"redis": ":6379"},
		"redis: {addr: 'redis://:p@h:1'}": {"redis": "redis://:p@h:1"},
		"redis: {caller: {addr: 'a:1', max_idle: 3}, pubsub: {addr: 'b:2'}}": {"redis": "a:1 b:2"},
		"caller_broker: {blocking_timeout: 10s, call_cap: 7}":                {"redis": ":6379", "call-cap": "7"},
		"server: {addr: ':8000', paths: [/ws, /other], close_uri: bye}": {
			"redis": ":6379", "listen": ":8000", "path": "/ws, /other", "close-uri": "bye"},
		"server: {whitelisted_origins: ['', 'http://localhost:8080'], allow_empty_subprotocol: yes}": {
			"redis": ":6379", "origin": "none, http://localhost:8080", "allow-empty-subprotocol": "yes"},
		"server: {read_limit: 4096, write_limit: 0, read_timeout: 1m30s, write_timeout: 2000000000}": {
			"redis": ":6379", "read-limit": "4096", "read-timeout": "1m30s", "write-timeout": "2s"},
		"server: {read_timeout: 0, write_timeout: 0s, paths: [], close_uri: ''}": {"redis": ":6379"},
	} {
		flags, err := LoadSocket(want, sources(nil))
		testkit.Must(t, err)
		if old, err := loadOld(text); err != nil || !reflect.DeepEqual(old.Socket, flags.Socket) || old.Listen != flags.Listen {
			t.Errorf("%s: %v, %v; want %v", text, old, err, want)
		}
	}
	const idle = "keys of the file have no effect here, see docs/juggler.md: redis.max_active redis.idle_timeout server.handshake_timeout"
	old, err := loadOld("redis: {addr: 'h:1', max_active: 100, idle_timeout: 30s}\nserver: {addr: ':1', handshake_timeout: 10s}", "CABRANK_REDIS=i:1", "CABRANK_SOCKET_PUSH_TOKEN=env:CABRANK_MINE", "CABRANK_MINE=x")
	testkit.Must(t, err)
	if strings.Join(old.Warnings, "\n") != idle || old.Socket.Redis != "i:1" || old.origins["listen"].String() != "juggler.yml:2" {
		t.Errorf("%q, Redis %s, listen at %s", old.Warnings, old.Socket.Redis, old.origins["listen"])
	}
}

// What the old server passed over is a fault, with its line.
func TestOldSocketFaults(t *testing.T) {
	for text, want := range map[string]string{
		"server: {adr: ':1'}":                                 "juggler.yml:1: server.adr: unknown key; did you mean server.addr?",
		"serve: {addr: ':1'}":                                 "juggler.yml:1: serve: unknown key; did you mean server?",
		"workers: {count: 1}":                                 "juggler.yml:1: workers: unknown key; allowed: caller_broker, redis, server",
		"redis: {password: secret}":                           "juggler.yml:1: redis.password: unknown key; allowed: addr, caller, idle_timeout, max_active, max_idle, pubsub",
		"server: {read_timeout: soon}":                        `juggler.yml:1: server.read_timeout: "soon" is not a time such as 300ms, 10s or 2m; allowed: 1ms to 720h`,
		"server:\n  read_limit: -1":                           "juggler.yml:2: server.read_limit: \"-1\" is out of range; allowed: 1 to 1GiB",
		"server: {paths: ws}":                                 `juggler.yml:1: server.paths: `,
		"server: {paths: [ws]}":                               `juggler.yml:1: server.paths: `,
		"server: {paths: [/ws, {a: b}]}":                      `juggler.yml:1: server.paths: has an item that is not plain text`,
		"server: {whitelisted_origins: ['*']}":                `juggler.yml:1: server.whitelisted_origins: "*" is not an origin`,
		"redis: {addr: 'h:1', pubsub: {addr: 'i:1'}}":         "juggler.yml:1: redis.addr: is one address too many, or one is missing; allowed: redis.addr alone, or one address for each of redis.caller.addr and redis.pubsub.addr",
		"redis: {pubsub: {addr: 'i:1'}}":                      "juggler.yml:1: redis.pubsub.addr: is one address too many, or one is missing",
		"redis: {caller: {addr: 'i:1'}}":                      "juggler.yml:1: redis.caller.addr: is one address too many, or one is missing",
		"redis: {pubsub: {addr: [i]}, caller: {addr: 'h:1'}}": "juggler.yml:1: redis.caller.addr: is one address too many, or one is missing",
		"redis: {pubsub: {addr: 'i:1'}, caller: {addr: {}}}":  "juggler.yml:1: redis.caller.addr: ",
		"server: {addr: ':1'}\nserver: {addr: ':secret'}":     "juggler.yml:2: ",
	} {
		_, err := loadOld(text)
		testkit.Want(t, err != nil && strings.HasPrefix(err.Error(), want) && !strings.Contains(err.Error(), "secret"),
			"%s: %v, want %s", text, err, want)
	}
	_, err := LoadSocket(map[string]string{ConfigFlag: "gone.yml"}, sources(nil))
	faults, ok := errors.AsType[Faults](err)
	testkit.Want(t, ok && strings.Contains(faults.Error(), "gone.yml"), "%v", err)
}
