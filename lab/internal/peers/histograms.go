package peers

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/cabrank/cabrank/lab/internal/latency"
)

// histograms is the histogram log of a session. A run of the load client has a line in
// it for the latencies of its calls and, of an open loop, one for how late they were
// sent: 2 to 7 KB each. It is written while the session runs, so that memory does not
// grow with the runs.
//
// Shape: the tag of a line is WORKLOAD/PHASE/PROXY/ROUND/latency or …/lag, rounds from 1.
type histograms struct {
	file  *os.File
	log   *latency.LogWriter
	began time.Time
}

func newHistograms(path string, began time.Time) (*histograms, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	log, err := latency.NewLogWriter(file, began)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &histograms{file: file, log: log, began: began}, nil
}

// take writes what a run that has just ended has of histograms, and removes it from the
// run. Its place in time is that of the counted part, give or take the moments in which
// processes end.
func (h *histograms) take(r *run) error {
	end := time.Since(h.began)
	length := time.Duration(r.Seconds * float64(time.Second))
	tag := fmt.Sprintf("%s/%s/%s/%d", r.Workload, r.Phase, r.Peer, r.Repeat+1)
	var errs []error
	for _, one := range []struct {
		what string
		kept *latency.Histogram
	}{{"latency", r.Latencies}, {"lag", r.Lags}} {
		if one.kept != nil {
			i := latency.Interval{Tag: tag + "/" + one.what, Start: max(0, end-length), Length: length, Latencies: one.kept}
			errs = append(errs, h.log.Write(i))
		}
	}
	r.Latencies, r.Lags = nil, nil
	return errors.Join(errs...)
}

// saveAs copies the log to a file that is not there yet.
func (h *histograms) saveAs(path string) error {
	if _, err := h.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, h.file)
	return errors.Join(err, to.Close())
}

func (h *histograms) close() { h.file.Close() }
