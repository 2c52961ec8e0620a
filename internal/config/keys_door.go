package config

import "time"

const hostLegal = "a host name or address, empty for every interface"

func doorKeys() []Key {
	return []Key{
		{Name: "listen", Flag: "listen", Arg: "HOST:PORT", Default: ":8080",
			Applies: ByUpgrade, Help: "where callers come in (no host: every interface; port 0: the system chooses)",
			kind: listenAt{mayBeShared: true}, field: func(c *Config) any { return &c.Listen }},
		{Name: "call_timeout", Aliases: []string{"server.proxy_timeout"}, Env: "SERVER_PROXY_TIMEOUT", Default: "0s",
			Applies: ByReload, Help: "bound on every call, on top of the caller's own deadline",
			kind: duration{0, 24 * time.Hour, "none"}, field: func(c *Config) any { return &c.CallTimeout }},
		{Name: "proxies", Default: none,
			Applies: ByReload, Help: "addresses of proxies in front: from these the last entry of x-forwarded-for that is not among them is the caller's address",
			kind: list{cleanNetwork, "addresses and networks such as 10.0.0.0/8", 100}, field: func(c *Config) any { return &c.Proxies }},
		{Name: "control", Flag: "control", Arg: "auto|off|PATH", Default: automatic,
			Applies: ByUpgrade, Help: "unix socket by which cabrank status, restart and the like reach this process; auto is one of its own in the runtime directory",
			kind: freeText{cleanControl, controlLegal}, field: func(c *Config) any { return &c.Control }},
	}
}

func pageKeys() []Key {
	return []Key{
		{Name: "probes", Flag: "probes", Arg: "HOST:PORT|off", Default: ":5555",
			Applies: ByUpgrade, Help: "where /startup, /readiness and /liveness answer",
			kind: listenAt{mayBeOff: true}, field: func(c *Config) any { return &c.Probes }},
		{Name: "metrics", Aliases: []string{"metrics.listen"}, Flag: "metrics", Arg: "HOST:PORT|off", Default: ":9394",
			Applies: ByUpgrade, Help: "where the metrics page answers, at /metrics if no path is given",
			kind: listenAt{mayBeOff: true, path: "/metrics"}, field: func(c *Config) any { return &c.Metrics.Listener }},
		{Name: "metrics.gauges", Default: none,
			Applies: ByUpgrade, Help: "how a gauge that several workers have is merged, by name; others are summed. per_worker: all metrics are shown for each worker, and none is summed",
			kind: gauges{gaugePolicies()}, field: func(c *Config) any { return &c.Metrics }},
		{Name: "log.level", Env: "LOG_LEVEL", Flag: "log-level", Arg: "LEVEL", Default: "info",
			Applies: ByReload, Help: "least severe lines that are logged",
			kind: oneOf{words: []string{"debug", "info", "warn", "error"}}, field: func(c *Config) any { return &c.Log.Level }},
		{Name: "log.format", Env: "LOG_FORMAT", Flag: "log-format", Arg: "FORMAT", Default: "auto",
			Applies: ByUpgrade, Help: "form of the lines; auto is text on a terminal, else json",
			kind:  oneOf{[]string{"auto", "text", "json"}, map[string]string{"pretty": "text"}}, // gruf-relay's word
			field: func(c *Config) any { return &c.Log.Format }},
		{Name: "access_log.path", Aliases: []string{"access_log"}, Default: none,
			Applies: ByUpgrade, Help: "file for a line of JSON about each finished call, opened anew on SIGUSR1 or when it was renamed; or stdout",
			kind: freeText{cleanLogPath, "a path with a /, stdout, or none"}, field: func(c *Config) any { return &c.AccessLog.Path }},
		{Name: "access_log.sample", Default: "1",
			Applies: ByReload, Help: "share of the calls that end well and within a second; all others are always written",
			kind: decimal{min: 0, max: 1}, field: func(c *Config) any { return &c.AccessLog.Sample }},
	}
}

func limitKeys() []Key {
	return []Key{
		{Name: "buffer_total", Default: "64MiB",
			Applies: ByReload, Help: "bytes of all calls together that may be held in memory; fewer where the container has less",
			kind: byteSize{min: MiB, max: 64 * GiB}, field: func(c *Config) any { return &c.BufferTotal }},
		{Name: "limits.connections", Default: "20000",
			Applies: ByReload, Help: "callers' connections at a time; fewer where the system allows fewer open files, or the container has less memory; an eighth is never one address's",
			kind: wholeNumber{1, 1_000_000}, field: func(c *Config) any { return &c.Limits.Connections }},
		{Name: "limits.idle_timeout", Default: "1h",
			Applies: ByReload, Help: "how long a caller's connection may be without a call, a tenth more or less",
			kind: duration{time.Second, 30 * 24 * time.Hour, "for ever"}, field: func(c *Config) any { return &c.Limits.IdleTimeout }},
		{Name: "limits.connection_age", Default: "0s",
			Applies: ByReload, Help: "how old a caller's connection may be, a tenth more or less; its calls finish",
			kind: duration{time.Second, 30 * 24 * time.Hour, "any age"}, field: func(c *Config) any { return &c.Limits.ConnectionAge }},
	}
}

func nameKeys() []Key {
	return []Key{
		{Name: "dns.servers", Default: none,
			Applies: ByUpgrade, Help: "name servers for upstreams that are names; none is those of the system",
			kind: list{cleanNameServer, nameServerLegal, maxNameServers}, field: func(c *Config) any { return &c.DNS.Servers }},
	}
}
