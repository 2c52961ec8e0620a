package config

// grufKeys are names of gruf-relay's for parts of what keys here say as a whole, and for
// what is fixed here. They are read wherever gruf-relay read them, and are on no list but
// that of docs/why.md.
func grufKeys() []Key {
	host, port := text{clean: cleanHost, legal: "a host name or address, empty for every interface"}, plain{`range:"0..65535"`}
	return []Key{
		{Name: "server.host", Env: "SERVER_HOST", Of: "listen", kind: host, field: func(c *Config) any { return &c.Listen.Host }},
		{Name: "server.port", Env: "SERVER_PORT", Of: "listen", kind: port, field: func(c *Config) any { return &c.Listen.Port }},
		{Name: "probes.enabled", Env: "PROBES_ENABLED", Of: "probes", kind: plain{}, field: func(c *Config) any { return &c.Probes.On }},
		{Name: "probes.port", Env: "PROBES_PORT", Of: "probes", kind: port, field: func(c *Config) any { return &c.Probes.Port }},
		{Name: "metrics.enabled", Env: "METRICS_ENABLED", Of: "metrics", kind: plain{}, field: func(c *Config) any { return &c.Metrics.On }},
		{Name: "metrics.port", Env: "METRICS_PORT", Of: "metrics", kind: port, field: func(c *Config) any { return &c.Metrics.Port }},
		{Name: "metrics.path", Env: "METRICS_PATH", Of: "metrics",
			kind: text{clean: cleanPath, legal: "a path that begins with /"}, field: func(c *Config) any { return &c.Metrics.Path }},
		// Workers that serve calls are not asked, and one that is silent for longer is missed.
		{Name: "health_check.interval", Env: "HEALTH_CHECK_INTERVAL", Default: "5s", Applies: ByReload,
			kind: plain{`range:"10ms..1h"`}, field: func(c *Config) any { return &c.HealthCheck.Interval }},
		// Who has not answered a question in five seconds is sick, or its machine is.
		{Name: "health_check.timeout", Env: "HEALTH_CHECK_TIMEOUT", Default: "5s", Applies: ByReload,
			kind: plain{`range:"10ms..1h"`}, field: func(c *Config) any { return &c.HealthCheck.Timeout }},
		// Every five seconds is often enough for any scraper, and costs a worker nothing.
		{Name: "metrics.interval", Env: "METRICS_INTERVAL", Default: "5s", Applies: ByReload,
			kind: plain{`range:"100ms..1h"`}, field: func(c *Config) any { return &c.Metrics.Interval }},
	}
}

// benchKeys have a variable alone: benchmarks compare by them, and nobody else needs to.
func benchKeys() []Key {
	return []Key{
		// Without either calls are served in their order, and for callers who have gone.
		{Name: "queue.shed", Env: "CABRANK_QUEUE_SHED", Default: "true", Applies: ByReload,
			kind: plain{}, field: func(c *Config) any { return &c.Queue.Shed }},
		{Name: "queue.newest_first", Env: "CABRANK_QUEUE_NEWEST_FIRST", Default: "true", Applies: ByReload,
			kind: plain{}, field: func(c *Config) any { return &c.Queue.NewestFirst }},
		// More parts than CPUs gain nothing, and fewer leave CPUs idle.
		{Name: "shards", Env: "CABRANK_SHARDS", Default: "usable CPUs", Applies: ByUpgrade,
			kind: plain{`range:"1..256"`}, field: func(c *Config) any { return &c.Shards },
			measured: func(cpus, procs int) int { return min(cpus, procs, maxShards) }},
	}
}
