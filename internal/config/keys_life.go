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
		{Name: "hooks", Default: none,
			Applies: ByRestart, Secret: true, Help: "commands that are run around the life of each worker; each may take workers.boot_timeout",
			kind: hooks(), field: func(c *Config) any { return &c.Hooks }},
		{Name: "warm_up", Default: none,
			Applies: ByRestart, Secret: true, Help: "call that each worker has to answer before it gets others; it may take workers.boot_timeout",
			kind: warmUp(), field: func(c *Config) any { return &c.WarmUp }},
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
			Applies: ByReload, Help: "resident memory of a worker's processes above which it is replaced by a fresh one; or share of the container's memory limit above which the largest worker is",
			kind: memoryLimit{}, field: func(c *Config) any { return &c.Recycle.Memory }},
		{Name: "max_run_time", Default: "0s",
			Applies: ByReload, Help: "how long a worker may burn CPU for one call before it is replaced",
			kind: duration{time.Second, 30 * 24 * time.Hour, "for ever"}, field: func(c *Config) any { return &c.MaxRunTime }},
	}
}
