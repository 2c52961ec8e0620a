package peers

// row sums up the runs of one proxy on one workload: medians over the rounds.
// It is valid only when no call of any of its runs failed. What a kind of
// workload does not measure is 0, and not in the file.
type row struct {
	Workload string `json:"workload"`
	Peer     string `json:"peer"`
	Runs     int    `json:"runs"`
	Valid    bool   `json:"valid"`
	Failed   uint64 `json:"failed"`

	// Of the runs that count CPU.
	CPU        spread  `json:"cpu_us_per_call,omitzero"`
	User       float64 `json:"user_share,omitzero"`
	PerSecond  float64 `json:"calls_per_second,omitzero"`
	Packets    float64 `json:"loopback_packets_per_call,omitzero"`
	LoopBytes  float64 `json:"loopback_bytes_per_call,omitzero"`
	Switches   float64 `json:"switches_per_call,omitzero"`
	Request    float64 `json:"downstream_request_bytes_per_call,omitzero"`
	Answer     float64 `json:"downstream_answer_bytes_per_call,omitzero"`
	UpRequest  float64 `json:"upstream_request_bytes_per_call,omitzero"`
	UpAnswer   float64 `json:"upstream_answer_bytes_per_call,omitzero"`
	ForeignMax float64 `json:"foreign_share_max"`

	// Of the open loop.
	Rate    float64 `json:"rate,omitzero"`
	P50     spread  `json:"p50_us,omitzero"`
	P99     spread  `json:"p99_us,omitzero"`
	RateCPU spread  `json:"cpu_us_per_call_at_rate,omitzero"`
	Lag     float64 `json:"send_lag_p99_us,omitzero"`
	Unsent  uint64  `json:"unsent"`    // more than a few: the proxy cannot do this rate
	Rig     float64 `json:"rig_share"` // of the client's core, used by client and backends; near 1 they are what is measured

	// Of kindQueue.
	OverIdeal spread `json:"p99_over_ideal,omitzero"`
	IdealP99  spread `json:"ideal_p99_ms,omitzero"`
	InTime    spread `json:"in_time_share,omitzero"`
	Useful    spread `json:"useful_share,omitzero"` // of the time in which workers ran
	Overlaps  spread `json:"overlaps,omitzero"`
	Refused   spread `json:"refused,omitzero"`
	Late      spread `json:"late_starts,omitzero"`

	RSS        float64 `json:"rss_mb,omitzero"` // in the end; MB are 10^6 bytes
	PSS        float64 `json:"pss_mb,omitzero"`
	File       float64 `json:"pss_file_mb,omitzero"` // pages of the program and its libraries
	PerConn    spread  `json:"rss_kib_per_connection,omitzero"`
	PerConnPSS spread  `json:"pss_kib_per_connection,omitzero"`
	Start      spread  `json:"start_ms,omitzero"`
	Disk       disk    `json:"-"` // the file has it with the peer
}

// summarizeRow takes the runs of the first phase of the workload and those of
// its open loop, which may be the same.
func summarizeRow(w workload, p peer, first, open []run) row {
	s := row{Workload: w.Name, Peer: p.Name, Valid: len(first) > 0, Disk: p.Disk}
	s.count(first)
	if w.Kind == kindClosed || w.Kind == kindRaw {
		s.count(open)
	}
	s.addFirst(first)
	s.addOpen(open)
	s.addQueue(open)
	return s
}

func (s *row) count(runs []run) {
	for _, r := range runs {
		s.Runs++
		s.Failed += r.Failed
		s.Valid = s.Valid && r.Error == ""
	}
}

func (s *row) addFirst(runs []run) {
	mid := func(value func(run) float64) float64 { return median(of(runs, value)) }
	s.CPU = spreadOf(of(runs, func(r run) float64 { return r.CPUPerCall }))
	s.User = mid(func(r run) float64 { return r.UserShare })
	s.PerSecond = mid(func(r run) float64 { return r.PerSecond })
	s.Packets = mid(func(r run) float64 { return r.LoopPackets })
	s.LoopBytes = mid(func(r run) float64 { return r.LoopBytes })
	s.Switches = mid(func(r run) float64 { return r.Switches })
	s.Request = mid(func(r run) float64 { return r.Request })
	s.Answer = mid(func(r run) float64 { return r.Answer })
	s.UpRequest = mid(func(r run) float64 { return r.UpRequest })
	s.UpAnswer = mid(func(r run) float64 { return r.UpAnswer })
	s.RSS = mid(func(r run) float64 { return r.rss() })
	s.PSS = mid(func(r run) float64 { return r.pss() })
	s.File = mid(run.files)
	s.PerConn = spreadOf(of(runs, run.perConnection))
	s.PerConnPSS = spreadOf(of(runs, run.perConnectionPSS))
	s.Start = spreadOf(of(runs, func(r run) float64 { return r.StartMillis }))
	for _, r := range runs {
		s.ForeignMax = max(s.ForeignMax, r.Foreign)
	}
}

func (s *row) addOpen(runs []run) {
	s.Rate = median(of(runs, func(r run) float64 { return r.Rate }))
	s.P50 = spreadOf(of(runs, func(r run) float64 { return r.P50 }))
	s.P99 = spreadOf(of(runs, func(r run) float64 { return r.P99 }))
	s.RateCPU = spreadOf(of(runs, func(r run) float64 { return r.CPUPerCall }))
	s.Lag = median(of(runs, func(r run) float64 { return r.Lag }))
	s.Rig = median(of(runs, func(r run) float64 { return r.RigShare }))
	for _, r := range runs {
		s.Unsent += r.Unsent
	}
}

// of collects one value of every run that completed calls at all, in the order
// of the repeats.
func of(runs []run, value func(run) float64) (values []float64) {
	for _, r := range runs {
		if r.Calls > 0 {
			values = append(values, value(r))
		}
	}
	return values
}
