package config

import "time"

// ringHash is the policy that needs a key.
const ringHash = "ring_hash"

func rankKeys() []Key {
	return []Key{
		{Name: "balance", Flag: "balance", Arg: "POLICY", Default: "late_binding",
			Applies: ByUpgrade, Help: "how a call gets its endpoint; all but late_binding choose before there is a free slot",
			kind:  oneOf{words: []string{"late_binding", "random", "round_robin", "least_request", "p2c", "peak_ewma", ringHash}},
			field: func(c *Config) any { return &c.Balance }},
		{Name: "balance_key", Default: none,
			Applies: ByUpgrade, Help: "header or metadata whose value ring_hash hashes",
			kind: headerName{}, field: func(c *Config) any { return &c.BalanceKey }},
		{Name: "queue.length", Flag: "queue", Arg: "N", Default: "1000",
			Applies: ByReload, Help: "calls that may wait for a slot (0: nobody waits)",
			kind: wholeNumber{0, 1_000_000}, field: func(c *Config) any { return &c.Queue.Length }},
		{Name: "queue.timeout", Flag: "queue-timeout", Arg: "TIME", Default: "30s",
			Applies: ByReload, Help: "longest wait for a slot",
			kind: duration{min: time.Millisecond, max: time.Hour}, field: func(c *Config) any { return &c.Queue.Timeout }},
		{Name: "queue.shed", Default: "true",
			Applies: ByReload, Help: "whether a call is refused at once that cannot end before its deadline",
			kind: toggle{}, field: func(c *Config) any { return &c.Queue.Shed }},
		{Name: "queue.newest_first", Default: "true",
			Applies: ByReload, Help: "whether the newest call is served first while calls come too fast to be served in time",
			kind: toggle{}, field: func(c *Config) any { return &c.Queue.NewestFirst }},
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
		{Name: "limits.rate_per_key", Default: "0",
			Applies: ByReload, Help: "calls that one fair.key may start per second",
			kind: decimal{0.01, 1_000_000, "no limit"}, field: func(c *Config) any { return &c.Limits.RatePerKey }},
		{Name: "limits.burst_per_key", Default: automatic,
			Applies: ByReload, Help: "calls that one fair.key may start at once; auto is those of one second",
			kind: numberOr{automatic, wholeNumber{1, 1_000_000}}, field: func(c *Config) any { return &c.Limits.BurstPerKey }},
		{Name: "limits.calls_per_key", Default: "0",
			Applies: ByReload, Help: "calls of one fair.key that may run or wait at a time (0: no limit)",
			kind: wholeNumber{0, 1_000_000}, field: func(c *Config) any { return &c.Limits.CallsPerKey }},
		{Name: "retry_budget.ratio", Default: "0.1",
			Applies: ByReload, Help: "retries and hedges per call, over 10 s",
			kind: decimal{min: 0, max: 1}, field: func(c *Config) any { return &c.RetryBudget.Ratio }},
		{Name: "retry_budget.per_second", Default: "10",
			Applies: ByReload, Help: "retries and hedges per second that are allowed however few calls there are",
			kind: decimal{min: 0, max: 100_000}, field: func(c *Config) any { return &c.RetryBudget.PerSecond }},
		{Name: "absorb_bytes", Default: "1MiB",
			Applies: ByReload, Help: "bytes of an answer that are taken from the worker before the caller reads them",
			kind: byteSize{min: 0, max: 64 * MiB}, field: func(c *Config) any { return &c.AbsorbBytes }},
		{Name: "stall_timeout", Default: "60s",
			Applies: ByReload, Help: "how long a caller may move no byte of a call that holds a slot while others wait",
			kind: duration{time.Second, 24 * time.Hour, "for ever"}, field: func(c *Config) any { return &c.StallTimeout }},
		{Name: "max_hops", Default: "8",
			Applies: ByReload, Help: "cabranks that a call may have come through; more is a cycle",
			kind: wholeNumber{1, 255}, field: func(c *Config) any { return &c.MaxHops }},
		{Name: "explain", Default: "false",
			Applies: ByReload, Help: "whether answers carry cabrank-queue-ms and cabrank-worker in their trailers",
			kind: toggle{}, field: func(c *Config) any { return &c.Explain }},
	}
}
