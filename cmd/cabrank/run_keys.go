package main

import (
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
)

// relayKeys says how callers are told apart and what each may do.
func relayKeys(cfg *config.Config) relay.Keys {
	return relay.Keys{
		By:         keySource(cfg.Fair.Key.By),
		Metadata:   cfg.Fair.Key.Name,
		Weights:    cfg.Fair.Weights,
		Rate:       cfg.Limits.RatePerKey,
		Burst:      cfg.Limits.KeyBurst(),
		Concurrent: cfg.Limits.CallsPerKey,
	}
}

func keySource(by string) relay.KeySource {
	switch by {
	case "peer":
		return relay.ByPeer
	case "authority":
		return relay.ByAuthority
	case "metadata":
		return relay.ByMetadata
	default:
		return relay.ByNothing
	}
}

func relayLanes(cfg *config.Config) []relay.Lane {
	lanes := make([]relay.Lane, len(cfg.Lanes))
	for i, rule := range cfg.Lanes {
		lanes[i] = relay.Lane{
			LaneOptions: rank.LaneOptions{Name: rule.Name, Priority: rule.Priority, Reserve: rule.Reserve},
			Methods:     rule.Methods,
			Keys:        rule.Keys,
		}
	}
	return lanes
}
