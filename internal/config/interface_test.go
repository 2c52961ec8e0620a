package config

import (
	"strings"
	"testing"
)

// way is one row of the interface: the ways to set some keys, and what they
// hold after each.
type way struct {
	flag      string
	argument  string
	keys      string // separated by spaces, as the variables and values are
	variables string
	values    string
	defaults  string
}

// ways are the flags that people type and the names that their files and
// deployments hold. They are written out here and not taken from Keys, so that
// none changes by accident.
func ways() []way {
	return []way{
		{"listen", "127.0.0.1:7000", "listen", "CABRANK_LISTEN", "127.0.0.1:7000", ":8080"},
		{"workers", "3", "workers.count", "WORKERS_COUNT", "3", "4"}, // of the four CPUs that sources gives
		{"workers", "2-7", "workers.count", "WORKERS_COUNT", "2-7", "4"},
		{"control", "/run/c.sock", "control", "CABRANK_CONTROL", "/run/c.sock", "auto"},
		{"control", "off", "control", "CABRANK_CONTROL", "off", "auto"},
		{"slots", "7", "workers.slots", "WORKERS_POOL_SIZE", "7", "5"},
		{"slots", "7", "slots", "", "7", ""},
		{"slots", "auto", "workers.slots", "WORKERS_POOL_SIZE", "1-200", "5"},
		{"transport", "unix", "workers.transport", "CABRANK_WORKERS_TRANSPORT", "unix", "tcp"},
		{"start-port", "7100", "workers.start_port", "WORKERS_START_PORT", "7100", "9000"},
		{"upstream", "a:1,b:2,c:3", "upstreams", "CABRANK_UPSTREAMS", "a:1,b:2,c:3", "none"},
		{"min-ready", "2", "workers.min_ready", "CABRANK_WORKERS_MIN_READY", "2", "1"},
		{"boot-timeout", "7s", "workers.boot_timeout", "CABRANK_WORKERS_BOOT_TIMEOUT", "7s", "1m"},
		{"stop-timeout", "7s", "workers.stop_timeout", "CABRANK_WORKERS_STOP_TIMEOUT", "7s", "5s"},
		{"drain-timeout", "7s", "drain_timeout", "CABRANK_DRAIN_TIMEOUT", "7s", "20s"},
		{"pre-stop-delay", "7s", "pre_stop_delay", "CABRANK_PRE_STOP_DELAY", "7s", "0s"},
		{"balance", "ring_hash:x-user", "balance", "CABRANK_BALANCE", "ring_hash:x-user", "late_binding"},
		{"queue", "7", "queue.length", "CABRANK_QUEUE_LENGTH", "7", "1000"},
		{"queue-timeout", "7s", "queue.timeout", "CABRANK_QUEUE_TIMEOUT", "7s", "30s"},
		{"probes", "127.0.0.1:7001", "probes", "CABRANK_PROBES", "127.0.0.1:7001", ":5555"},
		{"probes", "off", "probes", "CABRANK_PROBES", "off", ":5555"},
		{"metrics", "127.0.0.1:7002", "metrics", "CABRANK_METRICS", "127.0.0.1:7002", ":9394"},
		{"metrics", "off", "metrics", "CABRANK_METRICS", "off", ":9394"},
		{"socket-path", "/ws,/chat", "socket.path", "CABRANK_SOCKET_PATH", "/ws,/chat", "none"},
		{"log-level", "warn", "log.level", "LOG_LEVEL", "warn", "info"},
		{"log-format", "text", "log.format", "LOG_FORMAT", "text", "auto"},
	}
}

// Every flag, key and variable means the same as the other two, and has the
// default that is promised.
func TestFlagsKeysAndVariables(t *testing.T) {
	for _, s := range ways() {
		t.Run(s.flag+", "+s.keys, func(t *testing.T) {
			keys, values := strings.Fields(s.keys), strings.Fields(s.values)
			byFlag := sources(nil)
			byFlag.Flags = map[string]string{s.flag: s.argument}
			var file strings.Builder
			var environ []string
			for i, key := range keys {
				file.WriteString(key + ": " + yamlValue(values[i]) + "\n")
			}
			for i, variable := range strings.Fields(s.variables) {
				environ = append(environ, variable+"="+values[i])
			}
			if keys[0] == "slots" { // an alias of the file, shown by its key
				keys[0] = "workers.slots"
			}
			wantValues(t, byFlag, keys, values, "flag --"+s.flag)
			wantValues(t, sources(map[string]string{"cabrank.yml": file.String()}), keys, values, "cabrank.yml:")
			if len(environ) > 0 {
				wantValues(t, sources(nil, environ...), keys, values, "variable ")
				wantValues(t, sources(nil), keys, strings.Fields(s.defaults), "default")
			}
		})
	}
}

// yamlValue writes a value as a file has it: what has commas is a list.
func yamlValue(value string) string {
	if strings.Contains(value, ",") {
		return "['" + strings.ReplaceAll(value, ",", "', '") + "']"
	}
	return value
}

// wantValues holds what is shown of some keys, and where it comes from.
func wantValues(t *testing.T, from Sources, keys, want []string, origin string) {
	t.Helper()
	shown := map[string]Value{}
	for _, value := range mustLoad(t, from).Values() {
		shown[value.Key] = value
	}
	for i, key := range keys {
		got := shown[key]
		if strings.ReplaceAll(got.Value, ", ", ",") != want[i] || !strings.HasPrefix(got.Origin.String(), origin) {
			t.Errorf("%s is %q from %q, want %q from %q", key, got.Value, got.Origin, want[i], origin)
		}
	}
}
