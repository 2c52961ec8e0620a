package config

import "time"

func rankKeys() []Key {
	return []Key{
		{Name: "balance", Flag: "balance", Arg: "POLICY", Default: "late_binding",
			Applies: ByUpgrade, Help: "how a call gets its endpoint; all but late_binding choose before there is a free slot",
			kind: balance{}, field: func(c *Config) any { return &c.Balance }},
		{Name: "queue.length", Flag: "queue", Arg: "N", Default: "1000",
			Applies: ByReload, Help: "calls that may wait for a slot (0: nobody waits)",
			kind: wholeNumber{0, 1_000_000}, field: func(c *Config) any { return &c.Queue.Length }},
		{Name: "queue.timeout", Flag: "queue-timeout", Arg: "TIME", Default: "30s",
			Applies: ByReload, Help: "longest wait for a slot",
			kind: duration{min: time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.Queue.Timeout }},
		{Name: "stream_slots", Default: automatic,
			Applies: ByReload, Help: "slots of all endpoints together that long streams may hold; auto is all but one, at least half",
			kind: numberOr{automatic, wholeNumber{1, maxWorkers * maxSlots}}, field: func(c *Config) any { return &c.StreamSlots }},
		{Name: "on_cancel", Default: automatic,
			Applies: ByReload, Help: "slot of a cancelled call: hold until the worker must be done, free at once, finish the call; auto holds, or frees under slots: auto",
			kind: oneOf{words: []string{automatic, "hold", "free", "finish"}}, field: func(c *Config) any { return &c.OnCancel }},
		{Name: "hang_timeout", Default: "30s",
			Applies: ByReload, Help: "silence of a worker that has calls and uses no CPU, after which it is replaced",
			kind: duration{time.Second, 24 * time.Hour, "never"}, field: func(c *Config) any { return &c.HangTimeout }},
	}
}

func callerKeys() []Key {
	return []Key{
		{Name: "fair.key", Default: "peer",
			Applies: ByReload, Help: "by what callers are told apart that share the slots: their address, the authority, the value of a metadata key, or not at all",
			kind: callerKey{}, field: func(c *Config) any { return &c.Fair.Key }},
		{Name: "fair.weights", Default: none,
			Applies: ByReload, Help: "shares of callers, by the value of fair.key; those not named have 1",
			kind: weights(), field: func(c *Config) any { return &c.Fair.Weights }},
		{Name: "lanes", Default: none,
			Applies: ByUpgrade, Help: "classes of calls with a priority and slots of their own",
			kind: laneRules(), field: func(c *Config) any { return &c.Lanes }},
		{Name: "methods", Default: none,
			Applies: ByReload, Help: "how calls of a method are repeated and cancelled",
			kind: methodRules(), field: func(c *Config) any { return &c.Methods }},
		{Name: "limits.calls_per_second", Default: "0",
			Applies: ByReload, Help: "calls that one fair.key may start per second, and as many at once",
			kind: decimal{0.01, 1_000_000, "no limit"}, field: func(c *Config) any { return &c.Limits.CallsPerSecond }},
		{Name: "limits.calls", Default: "0",
			Applies: ByReload, Help: "calls of one fair.key that may run or wait at a time (0: no limit)",
			kind: wholeNumber{0, 1_000_000}, field: func(c *Config) any { return &c.Limits.Calls }},
		{Name: "stall_timeout", Default: "60s",
			Applies: ByReload, Help: "how long a caller may move no byte of a call that holds a slot while others wait",
			kind: duration{time.Second, 24 * time.Hour, "for ever"}, field: func(c *Config) any { return &c.StallTimeout }},
		{Name: "explain", Default: "false",
			Applies: ByReload, Help: "whether answers carry cabrank-queue-ms and cabrank-worker in their trailers",
			kind: toggle{}, field: func(c *Config) any { return &c.Explain }},
	}
}
