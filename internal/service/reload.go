package service

import (
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/config"
)

// errUpgrading is why nothing is reloaded during an upgrade: the new process has read
// the configuration already, and would take over without what has changed since.
var errUpgrading = errors.New("an upgrade is under way, try again when it is over")

// settings are the configuration of a service as it changes. What it was started
// with is service.cfg, and holds for all that only an upgrade changes.
type settings struct {
	load  func() (*config.Config, error) // from the same flags, variables and file as at the start
	level *slog.LevelVar                 // of the log

	mu    sync.Mutex                    // one reload at a time; guards what follows
	holds atomic.Pointer[config.Config] // since the last reload; nil: none yet. Read from anywhere
	wears *config.Config                // what workers were started with that began with the last roll; nil: as the service

	grown atomic.Bool // after an upgrade: the old process is gone, and all workers are wanted
}

// current returns the configuration that holds now.
func (s *service) current() *config.Config {
	if holds := s.settings.holds.Load(); holds != nil {
		return holds
	}
	return s.cfg
}

// reload reads the configuration again and takes what can be taken while calls
// run. It tells what else has changed, by what makes that hold.
//
// No connection ends and no call fails for it. If anything is wrong with any of
// it, the error is an *admin.FaultsError and nothing has changed.
func (s *service) reload() (admin.Reload, error) {
	s.settings.mu.Lock()
	defer s.settings.mu.Unlock()
	if len(s.upgrading) > 0 {
		return admin.Reload{}, s.unlessStopping(errUpgrading)
	}
	loaded, merged, err := s.reread()
	if err == nil {
		err = s.othersUpstream(merged)
	}
	if err != nil {
		return admin.Reload{}, refusal(err)
	}
	before := s.current()
	if err := s.apply(merged); err != nil {
		return admin.Reload{}, refusal(err)
	}
	s.settings.holds.Store(merged)
	s.scaleAsChanged(before, merged)
	return s.found(before, loaded), nil
}

// reread returns the configuration as it is written now, and as it can hold.
func (s *service) reread() (loaded, merged *config.Config, err error) {
	if loaded, err = s.settings.load(); err != nil {
		return nil, nil, err
	}
	merged, err = config.Merge(s.current(), loaded)
	return loaded, merged, err
}

// refusal puts the faults of a configuration into the form that the control tells.
func refusal(err error) error {
	return &admin.FaultsError{Reason: "configuration refused, nothing has changed", Faults: config.Lines(err)}
}

// maxFaultLines bounds what one refused file adds to the log.
const maxFaultLines = 20

// logRefusal logs why a configuration was refused, and returns the first reason.
func (s *service) logRefusal(err error) (first string) {
	faults := []string{err.Error()}
	if refused, ok := errors.AsType[*admin.FaultsError](err); ok && len(refused.Faults) > 0 {
		faults = refused.Faults
	}
	for _, fault := range faults[:min(len(faults), maxFaultLines)] {
		s.log.Error("configuration refused, nothing has changed", "error", fault, "faults", len(faults))
	}
	return faults[0]
}

// apply has all parts go by a configuration, with those first that can refuse it.
func (s *service) apply(cfg *config.Config) error {
	if err := certs.Check(securePort(cfg)); err != nil && s.certs.Load() == nil {
		return faulty(cfg, "tls", err)
	}
	if err := s.readKeys(cfg); err != nil {
		return err
	}
	log := s.log
	if cfg.Limits.Connections == s.current().Limits.Connections {
		log = slog.New(slog.DiscardHandler) // that there are too few files for them was told at the start
	}
	options := s.relayOptions(cfg, log)
	if err := s.secure(cfg, &options); err != nil {
		return err
	}
	if err := s.peers.Replace(cfg.UpstreamTLS); err != nil {
		s.log.Warn("certificates for upstreams cannot be used: those of before stay", "error", err)
	}
	if err := s.upstreams.Replace(cfg.Upstreams); err != nil {
		return err
	}
	if s.workers != nil {
		s.workers.Configure(s.workerSettings(cfg))
	}
	s.upstreams.Configure(times(cfg))
	s.relay.Reconfigure(options)
	s.http1.Configure(webLimits(cfg))
	if s.sockets != nil {
		s.sockets.SetOrigins(originsOf(cfg.Socket.Origins))
	}
	s.boundSockets()
	if s.access != nil {
		s.access.log.Choose(accessChoice(cfg.AccessLog))
	}
	if s.tracer != nil {
		s.tracer.SetShare(cfg.Tracing.Sample)
	}
	s.settings.level.Set(cfg.Log.SlogLevel())
	return nil
}

// scaleAsChanged asks for another number of workers if another one is configured.
// One that was asked for by cabrank scale stays otherwise. A number that adapts
// moves between its bounds by itself.
func (s *service) scaleAsChanged(before, now *config.Config) {
	if s.workers == nil {
		return
	}
	s.autoscale.configure(now.Workers)
	was, is := before.Workers.Count, now.Workers.Count
	if was.N == is.N && was.Adapts() == is.Adapts() || is.Adapts() {
		return
	}
	if err := s.workers.Scale(is.N); err != nil {
		s.log.Warn("the number of workers does not change", "workers", is.N, "error", err)
	}
}

// found tells what a reload has found, and logs it with the values.
func (s *service) found(before, loaded *config.Config) admin.Reload {
	worn := s.settings.wears
	if worn == nil {
		worn = s.cfg
	}
	for _, warning := range loaded.Warnings {
		s.log.Warn("configuration", "warning", warning)
	}
	changes := config.Diff(before, loaded)
	applied, restart, upgrade := changes.By(config.ByReload), config.Diff(worn, loaded).By(config.ByRestart), changes.By(config.ByUpgrade)
	for _, change := range slices.Concat(applied, restart, upgrade) {
		s.log.Info("configuration changed", "key", change.Key, "old", change.Old, "new", change.New, "holds", holdsWith(change.Applies))
	}
	return admin.Reload{
		Applied: keysOf(applied), NeedsRestart: keysOf(restart), NeedsUpgrade: keysOf(upgrade),
		Warnings: loaded.Warnings,
	}
}

// holdsWith says when a change holds.
func holdsWith(a config.Applies) string {
	if a == config.ByReload {
		return "now"
	}
	return "with cabrank " + string(a)
}

// keysOf names keys; no keys are an empty list and not nothing, for JSON.
func keysOf(changes config.Changes) []string { return append([]string{}, changes.Keys()...) }

// rolled notes that all workers were started by a configuration: what a reload
// finds from now on is compared with that.
func (s *service) rolled(with *config.Config) {
	s.settings.mu.Lock()
	defer s.settings.mu.Unlock()
	s.settings.wears = with
}
