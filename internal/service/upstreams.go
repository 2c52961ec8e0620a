package service

import (
	"context"
	"net"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/discover"
)

// makeUpstreams prepares the endpoints that someone else runs; a reload may name
// some where there were none.
func (s *service) makeUpstreams() (err error) {
	cfg := s.cfg
	if s.peers, err = certs.NewPeers(cfg.UpstreamTLS, s.log); err != nil {
		return faulty(cfg, "upstream_tls", err)
	}
	s.outside = newPool(s.relay, cfg.Workers.Slots.N, false, s.workersChanged)
	s.outside.dial = s.dial
	s.upstreams, err = discover.New(discover.Options{
		Times: times(cfg), Upstreams: cfg.Upstreams, Servers: cfg.DNS.Servers, MinTTL: leastTTL, MaxTTL: mostTTL,
		Registry: s.outside, Membership: s.outside, Activity: s.outside, Logger: s.log, Dial: s.dial,
	})
	return cli.UsageError(err)
}

func times(cfg *config.Config) discover.Times {
	return discover.Times{DrainTimeout: cfg.DrainTimeout, HealthInterval: cfg.HealthCheck.Interval, HealthTimeout: cfg.HealthCheck.Timeout}
}

// dial connects to an endpoint that speaks TLS.
func (s *service) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return discover.Dial(ctx, network, address, s.peers.Config)
}

// upstreamSamples tells how the endpoints are that someone else runs.
func (s *service) upstreamSamples() []admin.UpstreamSample {
	return mapped(s.upstreams.Endpoints(), func(u discover.Status) admin.UpstreamSample {
		return admin.UpstreamSample{Worker: u.Name, State: u.State.String()}
	})
}

// lookupSamples tells what became of the lookups of names.
func (s *service) lookupSamples() []admin.LookupSample {
	return mapped(s.upstreams.Lookups(), func(l discover.Lookups) admin.LookupSample {
		return admin.LookupSample{Name: l.Name, Addresses: l.Addresses, Results: l.Results}
	})
}
