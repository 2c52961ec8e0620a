package latency

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Interval is one line of a histogram log: what was recorded in a stretch of
// time.
type Interval struct {
	// Tag names the series that the interval belongs to, such as an arm; it
	// may be empty, and has no comma and no space in it.
	Tag string
	// Start is the time since the start of the log, to the millisecond.
	Start time.Duration
	// Length is how long the interval lasted, to the millisecond.
	Length time.Duration
	// Latencies is what was recorded in it.
	Latencies *Histogram
}

// LogWriter writes a histogram log, version 1.3: lines of text that
// HistogramLogAnalyzer, HistogramLogProcessor and others read.
type LogWriter struct {
	log   *hdrhistogram.HistogramLogWriter
	start int64 // milliseconds since 1970
}

// NewLogWriter writes the head of a log to w. The start is kept to the second.
func NewLogWriter(w io.Writer, start time.Time) (*LogWriter, error) {
	start = start.Truncate(time.Second)
	l := &LogWriter{log: hdrhistogram.NewHistogramLogWriter(w), start: start.UnixMilli()}
	l.log.SetBaseTime(l.start)
	return l, errors.Join(
		l.log.OutputComment("[cabrank lab: latencies in nanoseconds, maxima in milliseconds]"),
		l.log.OutputLogFormatVersion(),
		l.log.OutputStartTime(l.start),
		l.log.OutputBaseTime(l.start),
		l.log.OutputLegend(),
	)
}

// Write adds one interval.
//
// Errors: a tag with a comma or white space in it, and those of the writer.
func (l *LogWriter) Write(i Interval) error {
	if strings.ContainsAny(i.Tag, ", \t\r\n") {
		return fmt.Errorf("histogram log: tag %q: a tag has no commas and no spaces", i.Tag)
	}
	// A copy is stamped, so that the histogram itself stays as it is.
	stamped := i.Latencies.hdr.Clone()
	stamped.SetTag(i.Tag)
	stamped.SetStartTimeMs(l.start + i.Start.Milliseconds())
	stamped.SetEndTimeMs(l.start + (i.Start + i.Length).Milliseconds())
	return l.log.OutputIntervalHistogram(stamped)
}
