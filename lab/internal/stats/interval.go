package stats

import (
	"encoding/json"
	"math"
)

// Interval is a range of ratios.
//
// Shape: Low <= High, from 0 to infinity. In JSON an infinite end is null.
type Interval struct {
	// Low and High are the ends.
	Low, High float64
	// Middle is the best guess: the geometric mean of the ratios, or their
	// median. It is nil if that is infinite, or depends on what is unknown.
	Middle *float64
}

type intervalJSON struct {
	Low    *float64 `json:"low"`
	Middle *float64 `json:"middle"`
	High   *float64 `json:"high"`
}

// MarshalJSON writes {"low":0.56,"middle":0.62,"high":0.69}.
func (i Interval) MarshalJSON() ([]byte, error) {
	end := func(ratio float64) *float64 {
		if math.IsInf(ratio, 1) {
			return nil
		}
		return &ratio
	}
	return json.Marshal(intervalJSON{Low: end(i.Low), Middle: i.Middle, High: end(i.High)})
}

// UnmarshalJSON reads what MarshalJSON has written.
func (i *Interval) UnmarshalJSON(data []byte) error {
	var read intervalJSON
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	end := func(ratio *float64) float64 {
		if ratio == nil {
			return math.Inf(1)
		}
		return *ratio
	}
	*i = Interval{Low: end(read.Low), Middle: read.Middle, High: end(read.High)}
	return nil
}
