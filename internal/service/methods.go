package service

import (
	"fmt"

	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/methods"
	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/socket"
)

// workerMethods has sockets call methods of the workers, if they may call any.
func (s *service) workerMethods() (beyond socket.Options, err error) {
	patterns := s.cfg.Socket.Methods
	if len(patterns) == 0 {
		return beyond, nil
	}
	options := schema.Options{
		Services: methods.Services(patterns), Open: methods.Reflection(s.relay), Limit: s.cfg.Queue.Timeout,
		Failed: func(err error) { s.log.Warn("workers do not describe their methods", "error", err) },
	}
	if len(s.cfg.Socket.Descriptors) > 0 {
		if options.Files, err = schema.ReadFiles(s.cfg.Socket.Descriptors); err != nil {
			return beyond, cli.UsageError(fmt.Errorf("socket.descriptors: %w", err))
		}
	}
	s.schema = schema.New(options)
	beyond.Methods = methods.New(methods.Options{Relay: s.relay, Schema: s.schema, Patterns: patterns})
	return beyond, nil
}

// workersChanged is told that an endpoint has come or gone.
func (s *service) workersChanged() {
	if s.schema != nil {
		s.schema.Changed()
	}
}
