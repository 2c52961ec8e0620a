package latency

import (
	"bytes"
	"errors"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Tagged is a histogram with the name of its line in a log, which has no comma and no white
// space in it.
type Tagged struct {
	Tag       string
	Latencies *Histogram
}

// Log writes histograms of one stretch of time as a histogram log, version 1.3: lines of text
// that HistogramLogAnalyzer, HistogramLogProcessor and others read.
//
// Units: the start is kept to the second, the length to the millisecond.
func Log(start time.Time, length time.Duration, all []Tagged) ([]byte, error) {
	var b bytes.Buffer
	begin := start.Truncate(time.Second).UnixMilli()
	log := hdrhistogram.NewHistogramLogWriter(&b)
	log.SetBaseTime(begin)
	err := errors.Join(
		log.OutputComment("[cabrank lab: latencies in nanoseconds, maxima in milliseconds]"),
		log.OutputLogFormatVersion(), log.OutputStartTime(begin), log.OutputBaseTime(begin), log.OutputLegend(),
	)
	for _, one := range all {
		stamped := one.Latencies.hdr.Clone() // so that the histogram itself stays as it is
		stamped.SetTag(one.Tag)
		stamped.SetStartTimeMs(begin)
		stamped.SetEndTimeMs(begin + length.Milliseconds())
		err = errors.Join(err, log.OutputIntervalHistogram(stamped))
	}
	return b.Bytes(), err
}
