package config

import "time"

// never is what zero means for what replaces workers.
const never = "never"

func timeKeys() []Key {
	return []Key{
		{Name: "workers.boot_timeout", Flag: "boot-timeout", Arg: "TIME", Default: "60s",
			Applies: ByReload, Help: "how long a worker may take to become ready before it is replaced",
			kind: duration{min: 100 * time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.Workers.BootTimeout }},
		{Name: "workers.stop_timeout", Flag: "stop-timeout", Arg: "TIME", Default: "5s",
			Applies: ByReload, Help: "how long a worker has between SIGTERM and SIGKILL",
			kind: duration{max: time.Hour}, field: func(c *Config) any { return &c.Workers.StopTimeout }},
		{Name: "health_check.interval", Env: "HEALTH_CHECK_INTERVAL", Default: "5s",
			Applies: ByReload, Help: "silence of a worker after which it is asked how it is",
			kind: duration{min: 10 * time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.HealthCheck.Interval }},
		{Name: "health_check.timeout", Env: "HEALTH_CHECK_TIMEOUT", Default: "5s",
			Applies: ByReload, Help: "how long a health check waits for its answer",
			kind: duration{min: 10 * time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.HealthCheck.Timeout }},
		{Name: "drain_timeout", Flag: "drain-timeout", Arg: "TIME", Default: "20s",
			Applies: ByReload, Help: "how long calls may finish when cabrank stops, or the worker that they run on",
			kind: duration{max: 24 * time.Hour}, field: func(c *Config) any { return &c.DrainTimeout }},
		{Name: "pre_stop_delay", Flag: "pre-stop-delay", Arg: "TIME", Default: "0s",
			Applies: ByReload, Help: "how long all stays open after readiness is off, before the drain",
			kind: duration{max: time.Hour}, field: func(c *Config) any { return &c.PreStopDelay }},
	}
}

func hookKeys() []Key {
	return []Key{
		{Name: "hooks.before_start", Default: none,
			Applies: ByRestart, Secret: true, Help: "command that is run before each start of a worker; if it fails the start has failed",
			kind: commandLine{}, field: func(c *Config) any { return &c.Hooks.BeforeStart }},
		{Name: "hooks.after_ready", Default: none,
			Applies: ByRestart, Secret: true, Help: "command that is run when a worker has become ready; its failure is only logged",
			kind: commandLine{}, field: func(c *Config) any { return &c.Hooks.AfterReady }},
		{Name: "hooks.before_stop", Default: none,
			Applies: ByRestart, Secret: true, Help: "command that is run before a worker gets SIGTERM, when its calls have ended; its failure is only logged",
			kind: commandLine{}, field: func(c *Config) any { return &c.Hooks.BeforeStop }},
		{Name: "hooks.timeout", Default: "30s",
			Applies: ByRestart, Help: "how long each hook may run before it is killed and has failed",
			kind: duration{min: 100 * time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.Hooks.Timeout }},
		{Name: "warm_up.method", Default: none,
			Applies: ByRestart, Help: "unary method that each worker is called with once, before it gets any other call",
			kind: methodName{}, field: func(c *Config) any { return &c.WarmUp.Method }},
		{Name: "warm_up.message", Default: none,
			Applies: ByRestart, Secret: true, Help: "message of that call, serialized, in base64; none is a message without fields",
			kind: base64Bytes{maxWarmUp}, field: func(c *Config) any { return &c.WarmUp.Message }},
		{Name: "warm_up.timeout", Default: "5s",
			Applies: ByRestart, Help: "how long that call may take; a worker that fails it is not ready",
			kind: duration{min: 10 * time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.WarmUp.Timeout }},
	}
}

func recycleKeys() []Key {
	return []Key{
		{Name: "recycle.calls", Default: "0",
			Applies: ByReload, Help: "calls served after which a worker is replaced by a fresh one, up to a tenth earlier (0: never)",
			kind: wholeNumber{0, 1_000_000_000}, field: func(c *Config) any { return &c.Recycle.Calls }},
		{Name: "recycle.age", Default: "0s",
			Applies: ByReload, Help: "age at which a worker is replaced by a fresh one, up to a tenth earlier",
			kind: duration{time.Second, 365 * 24 * time.Hour, never}, field: func(c *Config) any { return &c.Recycle.Age }},
		{Name: "recycle.memory", Default: "0",
			Applies: ByReload, Help: "resident memory of a worker's processes above which it is replaced by a fresh one",
			kind: byteSize{MiB, 1024 * GiB, never}, field: func(c *Config) any { return &c.Recycle.Memory }},
		{Name: "recycle.cgroup_memory", Default: "0",
			Applies: ByReload, Help: "share of the container's memory limit above which the largest worker is replaced by a fresh one",
			kind: percent{1, 100, never}, field: func(c *Config) any { return &c.Recycle.CgroupPercent }},
		{Name: "max_run_time", Default: "0s",
			Applies: ByReload, Help: "how long a worker may burn CPU for one call before it is replaced",
			kind: duration{time.Second, 30 * 24 * time.Hour, "for ever"}, field: func(c *Config) any { return &c.MaxRunTime }},
	}
}
