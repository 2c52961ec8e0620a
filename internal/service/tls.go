package service

import (
	"maps"
	"time"

	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/relay"
)

// secure has the relay serve TLS as a configuration has it. Certificates that cannot be used
// are an error, unless there are others, which stay.
func (s *service) secure(cfg *config.Config, options *relay.Options) error {
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
			return faulty(cfg, "tls", err)
		}
		s.certs.Store(files)
	}
	options.TLS, options.ClearText, options.Identity = files.Config(), cfg.ServesClear(), files.Identity
	return nil
}

// faulty says what is wrong with the files of a key.
func faulty(cfg *config.Config, key string, err error) error {
	origin, _ := cfg.Written(key)
	return cli.UsageError(config.Faults{{Origin: origin, Key: key, What: err.Error()}})
}

// securePort is what the port of a configuration needs.
func securePort(cfg *config.Config) certs.Port {
	return certs.Port{Pairs: cfg.TLS, Clients: cfg.TLSClient}
}

// expiring tells for how long certificates are good; nothing without any.
func (s *service) expiring() map[string]time.Duration {
	all := s.peers.Expires()
	if files := s.certs.Load(); files != nil && len(s.current().TLS) > 0 {
		of := files.Expires()
		maps.Copy(of, all)
		return of
	}
	return all
}
