package service

import (
	"strings"

	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/redislink"
)

// Check refuses what Run would refuse of a configuration before it opens a port: an upstream
// that is its own port, an address of Redis, a certificate.
func Check(cfg *config.Config) error {
	if err := cfg.UpstreamItself(cfg.Listen.Addr(), localAddresses()); err != nil {
		return cli.UsageError(err)
	}
	if err := redisAddresses(cfg); err != nil {
		return cli.UsageError(err)
	}
	if err := certs.Check(securePort(cfg)); err != nil {
		return faulty(cfg, "tls", err)
	}
	if err := cfg.UpstreamTLS.Check(); err != nil {
		return faulty(cfg, "upstream_tls", err)
	}
	return nil
}

// redisAddresses refuses the addresses of Redis that cabrank run would refuse, where it
// uses them.
func redisAddresses(cfg *config.Config) error {
	if len(cfg.Socket.Paths) == 0 {
		return nil
	}
	var faults config.Faults
	origin, _ := cfg.Written("socket.redis")
	for _, address := range []string{cfg.Socket.Redis.Calls, cfg.Socket.Redis.Events} {
		if _, err := redislink.ClientOption(address); err != nil && address != "" {
			faults = append(faults, config.Fault{Origin: origin, Key: "socket.redis", What: strings.TrimPrefix(err.Error(), "redis: ")})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return faults
}
