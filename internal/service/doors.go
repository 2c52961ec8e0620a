package service

import (
	"fmt"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/methods"
	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/webdoors"
)

// openSchema makes what knows the methods of the workers, for callers in JSON. Workers are
// asked for them when somebody needs one.
func (s *service) openSchema() (err error) {
	options := schema.Options{
		Open: methods.Reflection(s.relay), Limit: s.cfg.Queue.Timeout,
		Failed: func(err error) { s.log.Warn("workers do not describe their methods", "error", err) },
	}
	if len(s.cfg.Descriptors) > 0 {
		if options.Files, err = schema.ReadFiles(s.cfg.Descriptors); err != nil {
			return cli.UsageError(fmt.Errorf("descriptors: %w", err))
		}
	}
	s.schema = schema.New(options)
	return nil
}

// webDoors has callers of the web call the workers.
func (s *service) webDoors() *webdoors.Doors {
	return webdoors.New(webdoors.Options{
		Origins: func() door.Origins { return s.current().Web.Origins }, Schema: s.schema, MayRepeat: s.relay.MayRepeat,
		PassOn: s.cfg.Speak == "any", Log: s.log,
	})
}

// workersChanged is told that an endpoint has come or gone.
func (s *service) workersChanged() {
	if s.schema != nil {
		s.schema.Changed()
	}
}
