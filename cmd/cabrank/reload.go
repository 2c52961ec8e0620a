package main

import "github.com/cabrank/cabrank/internal/admin"

// reload takes what has changed in the configuration.
func (s *service) reload() (admin.Reload, error) {
	found := admin.Reload{Applied: []string{}, NeedsRestart: []string{}, NeedsUpgrade: []string{}}
	if s.workers == nil {
		return found, nil
	}
	options := s.workers.Settings()
	options.Command = s.workerOptions(s.cfg).Command
	return found, s.workers.Configure(options)
}
