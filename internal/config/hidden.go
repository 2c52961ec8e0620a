package config

// grufKeys are names of gruf-relay's for parts of what keys here say as a whole, and for
// what is fixed here. They are read wherever gruf-relay read them, and are on no list but
// that of docs/why.md.
func grufKeys() []Key {
	host, port := text(cleanHost, "a host name or address, empty for every interface"), plain{`range:"0..65535"`}
	return []Key{
		{Name: "server.host", Of: "listen", kind: host, field: func(c *Config) any { return &c.Listen.Host }},
		{Name: "server.port", Of: "listen", kind: port, field: func(c *Config) any { return &c.Listen.Port }},
		{Name: "probes.enabled", Of: "probes", kind: plain{}, field: func(c *Config) any { return &c.Probes.On }},
		{Name: "probes.port", Of: "probes", kind: port, field: func(c *Config) any { return &c.Probes.Port }},
		{Name: "metrics.enabled", Of: "metrics", kind: plain{}, field: func(c *Config) any { return &c.Metrics.On }},
		{Name: "metrics.port", Of: "metrics", kind: port, field: func(c *Config) any { return &c.Metrics.Port }},
		{Name: "metrics.path", Of: "metrics",
			kind: text(cleanPath, "a path that begins with /"), field: func(c *Config) any { return &c.Metrics.Path }},
		// Workers that serve calls are not asked, and one that is silent for longer is missed.
		{Name: "health_check.interval", Default: "5s", Applies: ByReload,
			kind: plain{`range:"10ms..1h"`}, field: func(c *Config) any { return &c.HealthCheck.Interval }},
		// Who has not answered a question in five seconds is sick, or its machine is.
		{Name: "health_check.timeout", Default: "5s", Applies: ByReload,
			kind: plain{`range:"10ms..1h"`}, field: func(c *Config) any { return &c.HealthCheck.Timeout }},
		// Every five seconds is often enough for any scraper, and costs a worker nothing.
		{Name: "metrics.interval", Default: "5s", Applies: ByReload,
			kind: plain{`range:"100ms..1h"`}, field: func(c *Config) any { return &c.Metrics.Interval }},
	}
}

// benchKeys have a variable alone: benchmarks compare by them, and nobody else needs to.
func benchKeys() []Key {
	return []Key{
		// Without either calls are served in their order, and for callers who have gone.
		{Name: "queue.shed", Default: "true", Applies: ByReload,
			kind: plain{}, field: func(c *Config) any { return &c.Queue.Shed }},
		{Name: "queue.newest_first", Default: "true", Applies: ByReload,
			kind: plain{}, field: func(c *Config) any { return &c.Queue.NewestFirst }},
		// More parts than CPUs gain nothing, and fewer leave CPUs idle.
		{Name: "shards", Default: "usable CPUs", Applies: ByUpgrade,
			kind: plain{`range:"1..256"`}, field: func(c *Config) any { return &c.Shards },
			measured: func(cpus, procs int) int { return min(cpus, procs, maxShards) }},
	}
}
