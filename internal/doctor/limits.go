package doctor

import (
	"fmt"
	"time"
)

const (
	// soon is how long a certificate is good of which nobody has taken care, as in the
	// alert CabrankCertificate.
	soon = 7 * 24 * time.Hour
	// near is the part of a limit at which little is left; of connections, of which one
	// address never has the last eighth, and of files it is less.
	near, nearOpen = .9, .85
)

// certificate finds one that has expired, or will soon.
func certificate(r *record) *Finding {
	for file, seconds := range r.last.Certificates {
		left := time.Duration(seconds * float64(time.Second))
		if left >= soon {
			continue
		}
		f := &Finding{
			Name: "certificate", Level: Warning, Figures: map[string]float64{"seconds": seconds},
			Says: fmt.Sprintf("the certificate %s is good for another %v", file, left.Round(time.Minute)),
			Do:   "renew the file: Cabrank reads it again by itself",
		}
		if left <= 0 {
			f.Level, f.Says = Error, fmt.Sprintf("the certificate %s has expired %v ago", file, -left.Round(time.Minute))
		}
		return f
	}
	return nil
}

// files finds that the files or connections that may be open are nearly all in use.
func files(r *record) *Finding {
	l := r.last
	switch {
	case l.FilesLimit > 0 && float64(l.Files) >= nearOpen*float64(l.FilesLimit):
		return &Finding{
			Name: "files", Level: Error, Figures: map[string]float64{"files": float64(l.Files), "limit": float64(l.FilesLimit)},
			Says: fmt.Sprintf("%d of at most %d files are open", l.Files, l.FilesLimit),
			Do:   "ulimit -n, or LimitNOFILE= of the unit",
		}
	case l.ConnectionsLimit > 0 && float64(l.Connections) >= nearOpen*float64(l.ConnectionsLimit):
		return &Finding{
			Name: "files", Level: Error, Figures: map[string]float64{"connections": float64(l.Connections), "limit": float64(l.ConnectionsLimit)},
			Says: fmt.Sprintf("callers have %d of at most %d connections", l.Connections, l.ConnectionsLimit),
			Do:   "limits.connections, and ulimit -n or LimitNOFILE= of the unit, which bound it",
		}
	}
	return nil
}

// memory finds that memory is nearly used up.
func memory(r *record) *Finding {
	l := r.last
	switch {
	case l.Load != nil && l.Load.MemoryLimit > 0 && float64(l.Load.MemoryUsed) >= near*float64(l.Load.MemoryLimit):
		return &Finding{
			Name: "memory", Level: Error, Figures: map[string]float64{"used": float64(l.Load.MemoryUsed), "limit": float64(l.Load.MemoryLimit), "worker": float64(l.Load.MemoryEach)},
			Says: fmt.Sprintf("%d of %d MB of memory are used, a worker has %d", l.Load.MemoryUsed>>20, l.Load.MemoryLimit>>20, l.Load.MemoryEach>>20),
			Do:   "more memory for this container, fewer workers, or recycle.memory, which replaces one that has grown",
		}
	case l.BufferedLimitBytes > 0 && float64(l.BufferedBytes) >= near*float64(l.BufferedLimitBytes):
		return &Finding{
			Name: "memory", Level: Error, Figures: map[string]float64{"buffered": float64(l.BufferedBytes), "limit": float64(l.BufferedLimitBytes)},
			Says: fmt.Sprintf("buffers of calls have %d of at most %d MB", l.BufferedBytes>>20, l.BufferedLimitBytes>>20),
			Do:   "buffer_total, or callers that read their answers faster",
		}
	}
	return nil
}
