package service

import (
	"log/slog"
	"math/rand/v2"

	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/web"
)

func (s *service) relayOptions(cfg *config.Config, log *slog.Logger) relay.Options {
	return relay.Options{
		SlotsMin:     cfg.Workers.Slots.Min,
		SlotsMax:     cfg.Workers.Slots.Max,
		Shards:       cfg.Shards,
		QueueLength:  cfg.Queue.Length,
		QueueTimeout: cfg.Queue.Timeout,
		CallTimeout:  cfg.CallTimeout,
		MinReady:     s.fewest(cfg.Workers.MinReady),
		ReplayBytes:  replayBytes,
		ReplayTotal:  replayTotal,
		BufferTotal:  int64(cfg.BufferTotal),
		AbsorbBytes:  absorbBytes,
		StallTimeout: cfg.StallTimeout,
		HangTimeout:  cfg.HangTimeout,
		HeaderList:   headerList,
		MaxStreams:   callsAtOnce,
		Resets:       resetsPerSecond,
		KeepAlive:    keepAlive,
		Keys:         relayKeys(cfg),
		Lanes:        cfg.Lanes,
		BalanceKey:   cfg.Balance.Key,
		MaxHops:      mostHops,
		OwnServices:  ownServices(cfg.OwnServices),
		Explain:      cfg.Explain,
		Proxies:      cfg.ProxyPrefixes(),
		Limits: relay.Limits{
			Connections: openable(cfg, openFiles(), log),
			Descriptors: lastOfCallers(openFiles()),
			Handshake:   handshakeTime,
			Header:      headerTime,
			Window:      waitingWindow,
			MaxWindow:   runningWindow,
			Buffer:      connectionBytes,
			Frame:       frameSize,
			Idle:        cfg.Limits.IdleTimeout,
			Age:         cfg.Limits.ConnectionAge,
		},
		Methods:     cfg.Methods,
		RetryBudget: relay.RetryBudget{Ratio: retryShare, PerSecond: retryPerSecond},
		Rank:        rankOptions(cfg),
		OnCancel:    cfg.CancelledSlots(),
		Log:         log,
		Random:      rand.Float64,
		Nap:         nap(),
	}
}

func ownServices(word string) relay.OwnServices {
	switch word {
	case "health":
		return relay.OwnHealth
	case "none":
		return relay.OwnNone
	default:
		return relay.OwnAll
	}
}

// webLimits are those of callers that speak HTTP/1.
func webLimits(cfg *config.Config) web.Limits {
	return web.Limits{Head: handshakeTime, HeadBytes: headerList, Alone: socketsAlone(cfg), Proxies: cfg.ProxyPrefixes()}
}

// rankOptions are those of the rank but for the lanes, of which the relay has a part.
func rankOptions(cfg *config.Config) rank.Options {
	o := rank.Options{QueueLength: cfg.Queue.Length, StreamSlots: cfg.StreamSlots, Balance: cfg.Balance.Policy}
	if !cfg.Queue.Shed {
		o.Admit = rank.BoundedLength
	}
	if !cfg.Queue.NewestFirst {
		o.Order = rank.FIFO
	}
	return o
}

// relayKeys says how callers are told apart and what each may do.
func relayKeys(cfg *config.Config) relay.Keys {
	return relay.Keys{
		By:         cfg.Fair.Key.By,
		Metadata:   cfg.Fair.Key.Name,
		Weights:    cfg.Fair.Weights,
		Rate:       cfg.Limits.CallsPerSecond,
		Burst:      cfg.Limits.KeyBurst(),
		Concurrent: cfg.Limits.Calls,
	}
}
