package latency

import (
	"encoding/json"
	"fmt"
	"time"
)

const (
	// mostCode is the highest status code of gRPC, UNAUTHENTICATED.
	mostCode = 16

	// unknown is the code for everything that is no code of a failure.
	unknown = 2
)

// Calls is what became of a number of calls: how long answers took, how long
// failures took, and how they failed. The two are kept apart, since a call
// that fails at once would make the answers look fast.
//
// Shape: made by NewCalls, or from JSON.
// Concurrency: none, as with Histogram.
type Calls struct {
	// Answered are the calls that ended with the status OK.
	Answered *Histogram `json:"answered"`
	// Failed are all others, with the time after which they failed.
	Failed *Histogram `json:"failed"`
	// Codes counts the failed ones by the status code of gRPC, 1 to 16.
	Codes map[uint32]int64 `json:"codes"`
}

// NewCalls returns an account of no calls.
func NewCalls() *Calls { return &Calls{Answered: New(), Failed: New(), Codes: map[uint32]int64{}} }

// Answer counts a call that was answered after d. It does not allocate.
func (c *Calls) Answer(d time.Duration) { c.Answered.Record(d) }

// Fail counts a call that failed after d with a status code of gRPC. A code
// that is none of a failure (0, or above 16) counts as UNKNOWN (2), as gRPC
// has it; it is returned.
func (c *Calls) Fail(code uint32, d time.Duration) (counted uint32) {
	if code == 0 || code > mostCode {
		code = unknown
	}
	c.Failed.Record(d)
	c.Codes[code]++
	return code
}

// Merge adds all that other has counted.
func (c *Calls) Merge(other *Calls) {
	c.Answered.Merge(other.Answered)
	c.Failed.Merge(other.Failed)
	for code, n := range other.Codes {
		c.Codes[code] += n
	}
}

// Count returns how many calls there were, answered or not.
func (c *Calls) Count() int64 { return c.Answered.Count() + c.Failed.Count() }

// UnmarshalJSON reads what encoding/json has written of Calls.
//
// Errors: one line, for histograms that are missing or not ours, and for
// codes that do not add up to the failed calls.
func (c *Calls) UnmarshalJSON(data []byte) error {
	type plain Calls // without this method
	var read plain
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	if read.Answered == nil || read.Failed == nil {
		return fmt.Errorf("calls: a histogram of answered or failed calls is missing")
	}
	sum, codes := int64(0), map[uint32]int64{}
	for code, n := range read.Codes {
		if code < 1 || code > mostCode || n < 1 {
			return fmt.Errorf("calls: %d failed with status %d: status is 1 to %d", n, code, mostCode)
		}
		codes[code] = n
		sum += n
	}
	if sum != read.Failed.Count() {
		return fmt.Errorf("calls: %d failed, but the codes are those of %d", read.Failed.Count(), sum)
	}
	read.Codes = codes
	*c = Calls(read)
	return nil
}
