package latency

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// mostLine is how long a line of a log may be: one histogram and the
	// fields before it.
	mostLine = mostText + 4<<10

	// mostSeconds is the latest time that a duration can hold.
	mostSeconds = 9e9
)

// Interval is one line of a histogram log: what was recorded in a stretch of
// time.
type Interval struct {
	// Tag names the series that the interval belongs to, such as an arm; it
	// may be empty, and has no comma and no space in it.
	Tag string
	// Start is the time since the start of the log, to the millisecond. Logs
	// of other tools may count from 1970.
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

// ReadLog yields the intervals of a histogram log, one at a time, so that a
// long log takes no more memory than a short one.
//
// Errors: one line that names the line of the log; it is the last thing that
// is yielded. Comments, the legend and empty lines are skipped; nothing else is.
func ReadLog(r io.Reader) iter.Seq2[Interval, error] {
	return func(yield func(Interval, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, mostLine)
		number := 0
		for lines.Scan() {
			number++
			line := strings.TrimSpace(lines.Text())
			if line == "" || line[0] == '#' || line[0] == '"' {
				continue
			}
			interval, err := parseInterval(line)
			if err != nil {
				yield(Interval{}, fmt.Errorf("histogram log: line %d: %w", number, err))
				return
			}
			if !yield(interval, nil) {
				return
			}
		}
		if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
			yield(Interval{}, fmt.Errorf("histogram log: line %d: more than %d bytes", number+1, mostLine))
		} else if err != nil {
			yield(Interval{}, fmt.Errorf("histogram log: line %d: %w", number+1, err))
		}
	}
}

// parseInterval reads a line.
//
// Shape: [Tag=NAME,]START,LENGTH,MAX,HISTOGRAM; times in seconds. The maximum
// is not read, since the histogram has it.
// Source: HdrHistogram, HistogramLogReader.
func parseInterval(line string) (i Interval, err error) {
	if tagged, ok := strings.CutPrefix(line, "Tag="); ok {
		i.Tag, line, _ = strings.Cut(tagged, ",")
	}
	fields := strings.Split(line, ",")
	if len(fields) != 4 {
		return i, fmt.Errorf("%d fields, want start, length, maximum and histogram", len(fields))
	}
	if i.Start, err = parseSeconds(fields[0]); err != nil {
		return i, err
	}
	if i.Length, err = parseSeconds(fields[1]); err != nil {
		return i, err
	}
	i.Latencies = &Histogram{}
	return i, i.Latencies.UnmarshalText([]byte(fields[3]))
}

// parseSeconds reads a time of a log to the millisecond.
func parseSeconds(field string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
	if err != nil || !(seconds >= 0 && seconds <= mostSeconds) {
		return 0, fmt.Errorf("%.40q is not a number of seconds from 0 to %.0f", field, float64(mostSeconds))
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Millisecond), nil
}
