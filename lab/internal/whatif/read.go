package whatif

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// ReadTimes reads service times that somebody has measured before.
//
// Shape: one of
//
//   - a time in each line, such as 12.5ms; a number without a unit is milliseconds.
//     Lines that begin with # are skipped;
//   - what-if.json of another answer: its calibrations;
//   - load.json of a closed loop (cabrank lab load --callers), one caller for each slot;
//   - a histogram log in nanoseconds, all of it, or the tag "answered" if it has tags.
//
// Units: echo is what each time has in it that is not the service; it is not taken for
// what-if.json, which has its own.
// Errors: one line that begins with the name.
func ReadTimes(name string, text []byte, echo time.Duration) (all []Calibration, err error) {
	switch trimmed := bytes.TrimSpace(text); {
	case len(trimmed) == 0:
		err = errors.New("it is empty")
	case trimmed[0] == '{':
		all, err = readJSON(name, trimmed, echo)
	case bytes.HasPrefix(trimmed, []byte("#[")):
		all, err = readLog(name, trimmed, echo)
	default:
		all, err = readLines(name, text, echo)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return all, nil
}

func readLines(name string, text []byte, echo time.Duration) ([]Calibration, error) {
	h := latency.New()
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		d, err := ParseTime(string(line))
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		h.Record(d)
	}
	if h.Count() == 0 {
		return nil, errors.New("there is no time in it")
	}
	return []Calibration{{Source: source(name, h.Count(), echo), Times: h, Echo: echo}}, nil
}

// ParseTime reads a service time as workers tell it: 12.5ms, 0.3s, or 12.5, which is
// milliseconds.
//
// Errors: one line.
func ParseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		var ms float64
		ms, err = strconv.ParseFloat(text, 64)
		d = time.Duration(min(max(ms, -1), 1e9) * float64(time.Millisecond))
		if math.IsNaN(ms) {
			d = -1
		}
	}
	if err != nil || d < 0 || d > latency.Bound {
		return 0, fmt.Errorf("%.40q is no service time: want one such as 12.5ms or 12.5 (milliseconds), at most %v", text, latency.Bound)
	}
	return d, nil
}

func readLog(name string, text []byte, echo time.Duration) ([]Calibration, error) {
	h := latency.New()
	for i, err := range latency.ReadLog(bytes.NewReader(text)) {
		if err != nil {
			return nil, err
		}
		if i.Tag == "" || i.Tag == "answered" {
			h.Merge(i.Latencies)
		}
	}
	if h.Count() == 0 {
		return nil, errors.New("there is no time in it, neither without a tag nor with the tag answered")
	}
	return []Calibration{{Source: source(name, h.Count(), echo), Times: h, Echo: echo}}, nil
}

// file is what is read of the files that the lab writes.
type file struct {
	Schema       string          `json:"schema"`
	Record       *traffic.Record `json:"record"`
	Calibrations calibrations    `json:"calibrations"`
}

// calibrations are read one by one, for a histogram takes 270 KB however short its text:
// no more than there are numbers of slots.
type calibrations []Calibration

func (all *calibrations) UnmarshalJSON(text []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	if len(parts) > mostSlots {
		return fmt.Errorf("%d calibrations, at most %d are read", len(parts), mostSlots)
	}
	*all = make(calibrations, len(parts))
	for i, part := range parts {
		if err := json.Unmarshal(part, &(*all)[i]); err != nil {
			return err
		}
	}
	return nil
}

func readJSON(name string, text []byte, echo time.Duration) ([]Calibration, error) {
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	switch {
	case strings.HasPrefix(f.Schema, "cabrank.lab.what-if/"):
		return f.Calibrations, checkAll(f.Calibrations)
	case f.Record == nil:
		return nil, errors.New("want load.json or what-if.json of cabrank lab")
	case f.Record.Loop != traffic.ClosedLoop:
		return nil, errors.New("it is of an open loop: its latencies have the waiting in them; measure with --callers, one for each slot")
	case f.Record.Calls.Answered.Count() == 0:
		return nil, errors.New("no call was answered")
	}
	h := f.Record.Calls.Answered
	return []Calibration{{Source: source(name, h.Count(), echo), Times: h, Echo: echo, Failed: f.Record.Calls.Failed.Count()}}, nil
}

func checkAll(all []Calibration) error {
	if len(all) == 0 {
		return errors.New("there are no calibrations in it")
	}
	for _, c := range all {
		if c.Times == nil || c.Times.Count() == 0 || c.Slots < 0 || c.Echo < 0 {
			return errors.New("a calibration has no times, or a number below 0")
		}
	}
	return nil
}

func source(name string, n int64, echo time.Duration) string {
	text := fmt.Sprintf("%d times of %s", n, name)
	if echo > 0 {
		text += fmt.Sprintf(", each less %v", echo)
	}
	return text
}
