package service

import (
	"os"
	"time"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/trace"
)

// lastSpans bounds the wait for the collector at the end.
const lastSpans = 2 * time.Second

// openTracing begins to send spans, where they are wanted. The relay's clock begins next.
func (s *service) openTracing(options *relay.Options) error {
	if s.cfg.Tracing.Endpoint == "" {
		return nil
	}
	o, err := trace.Read(s.cfg.Tracing.Endpoint, os.Getenv)
	if err != nil {
		return cli.UsageError(err)
	}
	began := time.Now()
	o.Share, o.Log, o.Version = s.cfg.Tracing.Sample, s.log, s.build.Version
	o.Clock = func() time.Duration { return time.Since(began) }
	s.tracer = trace.New(o)
	options.Trace = s.tracer
	return nil
}

// spans counts spans by what became of them.
func (s *service) spans() map[string]uint64 {
	t := s.tracer
	return map[string]uint64{
		"exported": t.Exported.Load(), "queue_full": t.Full.Load(), "failed": t.Failed.Load(),
		"rejected": t.Rejected.Load(), "limited": t.Limited.Load(),
	}
}
