package config

import (
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Every flag, key and variable means the same as the other two, and has the default that is
// promised. The flags that people type and the names that their files and deployments hold are
// written out here and not taken from Keys, so that none changes by accident.
func TestFlagsKeysAndVariables(t *testing.T) {
	for _, way := range []struct{ flag, argument, key, variable, value, standard string }{
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
	} {
		t.Run(way.flag+", "+way.key, func(t *testing.T) {
			byFlag, inFile := sources(nil), way.value
			byFlag.Flags = map[string]string{way.flag: way.argument}
			if strings.Contains(inFile, ",") {
				inFile = "['" + strings.ReplaceAll(inFile, ",", "', '") + "']"
			}
			wantValue(t, byFlag, way.key, way.value, "flag --"+way.flag)
			wantValue(t, sources(map[string]string{"cabrank.yml": way.key + ": " + inFile}), way.key, way.value, "cabrank.yml:1")
			if way.variable != "" {
				wantValue(t, sources(nil, way.variable+"="+way.value), way.key, way.value, "variable "+way.variable)
				wantValue(t, sources(nil), way.key, way.standard, "default")
			}
		})
	}
}

// wantValue holds what is shown of a key, and where it comes from.
func wantValue(t *testing.T, from Sources, key, want, origin string) {
	t.Helper()
	for _, got := range mustLoad(t, from).Values() {
		if got.Key != key && got.Key != "workers."+key { // slots is an alias
			continue
		}
		testkit.Want(t, strings.ReplaceAll(got.Value, ", ", ",") == want && got.Origin.String() == origin,
			"%s is %q from %q, want %q from %q", key, got.Value, got.Origin, want, origin)
		return
	}
	t.Errorf("%s is not shown", key)
}
