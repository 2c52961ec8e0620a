package main

import (
	"time"

	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/relay"
)

// secure has the relay serve TLS as a configuration has it. Certificates that cannot be used
// are an error, unless there are others, which stay.
func (s *service) secure(cfg *config.Config, options *relay.Options) error {
	if err := s.secureUpstreams(cfg, options); err != nil {
		return err
	}
	files, wanted := s.certs.Load(), securePort(cfg)
	switch {
	case len(wanted.Pairs) == 0:
		return nil
	case files != nil:
		if err := files.Replace(wanted); err != nil {
			s.log.Warn("certificates cannot be used: those of before stay", "error", err)
		}
	default:
		var err error
		if files, err = certs.Open(wanted, s.log); err != nil {
			return faultyFiles(cfg, "tls", err)
		}
		s.certs.Store(files) // closed when the service ends
	}
	options.TLS, options.ClearText, options.Identity = files.Config(), cfg.ServesClear(), files.Identity
	return nil
}

// secureUpstreams has upstreams over TLS called as a configuration has it, as secure does.
func (s *service) secureUpstreams(cfg *config.Config, options *relay.Options) error {
	wanted := certs.Upstream(cfg.UpstreamTLS)
	if s.dialer == nil {
		var err error
		if s.dialer, err = certs.NewDialer(wanted, s.log); err != nil {
			return faultyFiles(cfg, "upstream_tls", err)
		}
	} else if err := s.dialer.Replace(wanted); err != nil {
		s.log.Warn("upstream_tls cannot be used: what it was before stays", "error", err)
	}
	options.DialTLS = s.dialer.Dial
	return nil
}

// checkPairs refuses the certificates that cabrank run would refuse.
func checkPairs(cfg *config.Config) error {
	if _, err := certs.NewDialer(certs.Upstream(cfg.UpstreamTLS), nil); err != nil {
		return cli.UsageError(faultyFiles(cfg, "upstream_tls", err))
	}
	if err := certs.Check(securePort(cfg)); err != nil {
		return cli.UsageError(faultyFiles(cfg, "tls", err))
	}
	return nil
}

func faultyFiles(cfg *config.Config, key string, err error) error {
	origin, _ := cfg.Written(key)
	return config.Faults{{Origin: origin, Key: key, What: err.Error()}}
}

func securePort(cfg *config.Config) certs.Port {
	port := certs.Port{Clients: certs.Clients(cfg.TLSClient)}
	for _, p := range cfg.TLS {
		port.Pairs = append(port.Pairs, certs.Pair(p))
	}
	return port
}

// expiring tells for how long certificates are good; nothing without any.
func (s *service) expiring() map[string]time.Duration {
	if files := s.certs.Load(); files != nil && len(s.current().TLS) > 0 {
		return files.Expires()
	}
	return nil
}
