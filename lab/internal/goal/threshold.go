package goal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

const (
	mostText       = 100     // bytes of a threshold
	mostThresholds = 100     // judged at a time
	mostShare      = 0.99999 // the highest quantile: p99.999 needs ten million calls

	allNames = "any quantile such as p50, p99 or p99.9, max, mean, errors, unsent or rate"
)

// Unit is that of a measured value, as it stands in JSON.
type Unit string

// The units of what can be judged.
const (
	Nanoseconds Unit = "ns"
	Share       Unit = "share" // 0 to 1
	PerSecond   Unit = "per_second"
)

// Threshold is one condition on a run.
//
// Shape: made by ParseThreshold.
type Threshold struct {
	text  string
	name  string  // of the figure; "p" for every quantile
	share float64 // of a quantile: 0.99 is p99
	op    string
	limit float64 // in the unit
	unit  Unit
	added bool
}

// String returns the threshold as it was written, without spaces.
func (t Threshold) String() string { return t.text }

// Thresholds are all that a run is held against.
type Thresholds []Threshold

// Parse reads the thresholds that people have given. If none of them is about errors,
// errors<1% is added, and marked so in what Judge returns: a call that fails has no
// latency, so that a service which refuses everything at once would hold p99<100ms.
// Who does not care about errors writes errors<=100%.
//
// Errors: one line that begins with the option.
func Parse(texts []string) (Thresholds, error) {
	if len(texts) == 0 {
		return nil, errors.New("--fail: no threshold is given; want one such as p99<100ms")
	}
	if len(texts) > mostThresholds {
		return nil, fmt.Errorf("--fail: %d thresholds, at most %d are judged", len(texts), mostThresholds)
	}
	var all Thresholds
	aboutErrors := false
	for _, text := range texts {
		t, err := ParseThreshold(text)
		if err != nil {
			return nil, fmt.Errorf("--fail %.100q: %w", text, err)
		}
		aboutErrors = aboutErrors || t.name == "errors"
		all = append(all, t)
	}
	if !aboutErrors {
		all = append(all, Threshold{text: "errors<1%", name: "errors", op: "<", limit: 0.01, unit: Share, added: true})
	}
	return all, nil
}

// ParseThreshold reads one threshold.
//
// Shape: FIGURE OPERATOR LIMIT, with or without spaces around the operator, which is
// one of <, <=, > and >=.
//
//	p99<100ms     a quantile of the latencies, p0.001 to p99.999
//	max<2s        the longest latency
//	mean<=20ms    their mean
//	errors<1%     the share of the calls that were due and not answered: failed,
//	              unsent, or open at the end; "failed" is the same
//	unsent<0.1%   the share of those that could not be sent
//	rate>=450     answers per second
//
// Units: a latency has that of Go's durations (ns, us, ms, s, m, h), above 0 and below
// an hour; a share is 0 to 100 and has its %; a rate is above 0, /s may follow.
// Errors: one line that says what is wrong, and what would be right.
func ParseThreshold(text string) (Threshold, error) {
	if len(text) > mostText {
		return Threshold{}, fmt.Errorf("it has %d bytes; want one such as p99<100ms, and --fail once for each", len(text))
	}
	at := strings.IndexAny(text, "<>=!")
	if at < 0 {
		return Threshold{}, errors.New("no comparison; want one such as p99<100ms or errors<=1%")
	}
	name, rest := strings.TrimSpace(text[:at]), text[at:]
	op := rest[:len(rest)-len(strings.TrimLeft(rest, "<>=!"))]
	limit := strings.TrimSpace(rest[len(op):])
	t := Threshold{text: name + op + limit, op: op}
	switch op {
	case "<", "<=", ">", ">=":
	default:
		return Threshold{}, fmt.Errorf("%.10q is no comparison; want <, <=, > or >=", op)
	}
	if err := t.readName(name); err != nil {
		return Threshold{}, err
	}
	if err := t.readLimit(limit); err != nil {
		return Threshold{}, err
	}
	return t, nil
}

func (t *Threshold) readName(name string) error {
	t.name = name
	switch name {
	case "max", "mean":
		t.unit = Nanoseconds
	case "errors", "failed":
		t.name, t.unit = "errors", Share
	case "unsent":
		t.unit = Share
	case "rate":
		t.unit = PerSecond
	default:
		return t.readQuantile(name)
	}
	return nil
}

func (t *Threshold) readQuantile(name string) error {
	digits, is := strings.CutPrefix(name, "p")
	if _, err := number(digits, ""); !is || err != nil {
		return fmt.Errorf("%.40q is not a figure; want %s", name, allNames)
	}
	share, err := number(digits, "e-2")
	if err != nil || share < 1e-5 || share > mostShare {
		return fmt.Errorf("%.40q is not a quantile from p0.001 to p99.999; the longest latency is max", name)
	}
	t.name, t.share, t.unit = "p", share, Nanoseconds
	return nil
}

func (t *Threshold) readLimit(limit string) error {
	switch t.unit {
	case Nanoseconds:
		return t.readDuration(limit)
	case Share:
		digits, is := strings.CutSuffix(limit, "%")
		digits = strings.TrimSpace(digits)
		n, err := number(digits, "e-2")
		if !is || err != nil || n > 1 {
			return fmt.Errorf("%.40q is not a share from 0%% to 100%%, such as 0.5%%", limit)
		}
		t.limit = n
		t.text = t.text[:len(t.text)-len(limit)] + digits + "%"
	default:
		n, err := number(strings.TrimSuffix(limit, "/s"), "")
		if err != nil || n <= 0 || n > 1e9 {
			return fmt.Errorf("%.40q is not a number of answers per second above 0, such as 450", limit)
		}
		t.limit = n
	}
	if (t.op == "<" && t.limit == 0) || (t.op == ">" && t.unit == Share && t.limit == 1) {
		return fmt.Errorf("it can never hold; want %s= instead of %s", t.op, t.op)
	}
	return nil
}

func (t *Threshold) readDuration(limit string) error {
	if _, err := number(limit, ""); err == nil {
		return fmt.Errorf("%.40q has no unit; want a duration such as %sms", limit, limit)
	}
	d, err := time.ParseDuration(limit)
	if err != nil {
		return fmt.Errorf("%.40q is not a duration such as 20ms or 1.5s", limit)
	}
	if d <= 0 || d >= latency.Bound {
		return fmt.Errorf("%.40q: want a duration above 0 and below %v", limit, latency.Bound)
	}
	t.limit = float64(d)
	return nil
}

// number reads digits with at most one point, no sign and no exponent but the given
// one, so that 0.7 with e-2 is the number nearest to 0.007.
func number(digits, exponent string) (float64, error) {
	if digits == "" || strings.Trim(digits, "0123456789.") != "" {
		return 0, fmt.Errorf("%.40q is not a number", digits)
	}
	return strconv.ParseFloat(digits+exponent, 64)
}

func (t Threshold) holds(value float64) bool {
	switch t.op {
	case "<":
		return value < t.limit
	case "<=":
		return value <= t.limit
	case ">":
		return value > t.limit
	default:
		return value >= t.limit
	}
}

// least reports whether a threshold wants a figure to be high.
func (t Threshold) least() bool { return t.op[0] == '>' }
