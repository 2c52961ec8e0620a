package peers

import (
	"fmt"
	"strings"
)

// What can be compared, and the unit of the result.
const (
	whatCPU     = "CPU per call"                // a ratio
	whatP50     = "p50 at half the best's rate" // a ratio
	whatP99     = "p99 at half the best's rate" // a ratio
	whatAdded   = "added p50"                   // ms
	whatPerConn = "RSS per idle connection"     // KiB
	whatRSS     = "RSS after load"              // MB of 10^6 bytes

	whatIdeal   = "p99 over that of the ideal queue" // a ratio
	whatNotDone = "share of calls not answered in time"
	whatOverlap = "calls that overlap at a worker"
	whatLate    = "calls begun after their deadline"

	whatCalls = "calls per second"                  // of the closed loop
	whatPaced = "calls per second of the open loop" // at the rate that was asked for
	whatLag   = "send lag p99"                      // us
)

// best stands for the L7 peer with the least CPU per call, chosen in every
// round.
const best = "best L7"

// enoughPairs is how many pairs a quoted result needs.
const enoughPairs = 5

// bar is the most that cabrank may need, or the least that the client must do.
type bar struct {
	What   string  `json:"what"`
	Beside string  `json:"beside,omitempty"` // a peer, or best
	Most   float64 `json:"most,omitempty"`
	Least  float64 `json:"least,omitempty"` // above 0 there is no Most
}

// none is the most of a count that must be 0.
const none = 0.5

// closedBars are those of a workload whose bars on CPU are given: against the
// copy of bytes and against the best L7 peer.
func closedBars(tcp, l7 float64) []bar {
	return []bar{
		{What: whatCPU, Beside: "haproxy-tcp", Most: tcp}, {What: whatCPU, Beside: best, Most: l7},
		{What: whatP50, Beside: best, Most: 1}, {What: whatP99, Beside: best, Most: 1},
		{What: whatRSS, Most: 15},
	}
}

// rawBars are those of the client: far more than any proxy does, so that it is not the
// client that is measured.
func rawBars() []bar {
	return []bar{{What: whatCalls, Least: 400_000}, {What: whatPaced, Least: 60_000}, {What: whatLag, Most: 1000}}
}

// How a check ends.
const (
	held     = "held"
	missed   = "MISSED"
	notValid = "NOT VALID"
)

// check compares two proxies within each round, or looks at one, and holds the
// median against a bar if there is one.
type check struct {
	Workload string `json:"workload"`
	Peer     string `json:"peer"`
	What     string `json:"what"`
	Beside   string `json:"beside,omitempty"`
	Unit     string `json:"unit,omitempty"` // none for a ratio
	spread
	Values  []float64 `json:"values"`              // of each round
	Best    []string  `json:"best_l7,omitempty"`   // of each round
	Most    float64   `json:"most,omitempty"`      // the bar, if it is a most
	Least   float64   `json:"least,omitempty"`     // the bar, if it is a least
	Because string    `json:"because,omitempty"`   // why the bar is what it is
	Verdict string    `json:"verdict,omitempty"`   // empty without a bar
	Reason  string    `json:"not_valid,omitempty"` // why
}

// judge fills in the spread and the verdict from Values; rounds is how many
// values there should be.
func (c *check) judge(rounds int) {
	c.spread = spreadOf(c.Values)
	if len(c.Values) < rounds || rounds == 0 {
		c.Reason = fmt.Sprintf("only %d of %d rounds without a failed call on either side", len(c.Values), rounds)
	}
	switch {
	case c.Most == 0 && c.Least == 0:
	case c.Reason != "":
		c.Verdict = notValid
	case c.Median >= c.Least && (c.Most == 0 || c.Median <= c.Most):
		c.Verdict = held
	default:
		c.Verdict = missed
	}
}

func (c check) String() string {
	s := c.What + ", " + c.Peer
	if c.Beside != "" && c.Unit == "" {
		s += " / " + c.Beside
	}
	switch {
	case len(c.Values) == 0:
		s += ": no value"
	case c.Unit == "":
		s += ": " + c.text(3)
	case c.Unit == "calls/s":
		s += ": " + c.text(0) + " " + c.Unit
	default:
		s += ": " + c.text(3) + " " + c.Unit
	}
	if c.Least > 0 {
		s += fmt.Sprintf(", bar at least %.0f: %s", c.Least, c.Verdict)
	} else if c.Most > 0 {
		s += fmt.Sprintf(", bar %.2f: %s", c.Most, c.Verdict)
		if c.Because != "" {
			s += " [" + c.Because + "]"
		}
	}
	if c.Reason != "" {
		s += " (" + c.Reason + ")"
	} else if n := len(c.Values); c.Verdict != "" && n < enoughPairs {
		s += fmt.Sprintf(" (%d rounds; a result to quote needs %d)", n, enoughPairs)
	}
	if len(c.Best) > 0 {
		s += "; best: " + tally(c.Best)
	}
	return s
}

// tally says how often each name occurs, in the order of the first occurrence.
func tally(names []string) string {
	count := map[string]int{}
	var order []string
	for _, name := range names {
		if count[name]++; count[name] == 1 {
			order = append(order, name)
		}
	}
	for i, name := range order {
		order[i] = fmt.Sprintf("%s %dx", name, count[name])
	}
	return strings.Join(order, ", ")
}
