package main

import (
	"log/slog"
	"math/rand/v2"

	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/relay"
)

// replayTotal bounds the request bytes that the process keeps for replays (R3).
const replayTotal = 16 << 20

func relayOptions(cfg *config.Config, log *slog.Logger) relay.Options {
	fewest, most := slotBounds(cfg.Workers)
	return relay.Options{
		SlotsMin:     fewest,
		SlotsMax:     most,
		Shards:       cfg.Shards,
		QueueLength:  cfg.Queue.Length,
		QueueTimeout: cfg.Queue.Timeout,
		CallTimeout:  cfg.Server.ProxyTimeout,
		MinReady:     cfg.Workers.MinReady,
		Refusals:     cfg.Refusals,
		ReplayBytes:  int(cfg.ReplayBytes),
		ReplayTotal:  replayTotal,
		BufferTotal:  int64(cfg.BufferTotal),
		AbsorbBytes:  int(cfg.AbsorbBytes),
		StallTimeout: cfg.StallTimeout,
		HeaderList:   uint32(cfg.MaxHeaderList),
		MaxStreams:   uint32(cfg.MaxConcurrentStreams),
		Resets:       cfg.Limits.ResetsPerSecond,
		KeepAlive:    cfg.Limits.KeepAlive,
		Keys:         relayKeys(cfg),
		Lanes:        relayLanes(cfg),
		BalanceKey:   cfg.BalanceKey,
		MaxHops:      cfg.MaxHops,
		Explain:      cfg.Explain,
		Limits: relay.Limits{
			Connections: openable(cfg, openFiles(), log),
			Handshake:   cfg.Limits.HandshakeTimeout,
			Header:      cfg.Limits.HeaderTimeout,
			Window:      int32(cfg.Limits.Window),
			MaxWindow:   int32(cfg.Limits.MaxWindow),
			Buffer:      int(cfg.Limits.Buffer),
			Frame:       uint32(cfg.Limits.FrameSize),
			Idle:        cfg.Limits.IdleTimeout,
			Age:         cfg.Limits.ConnectionAge,
		},
		Methods:     methodRules(cfg.Methods),
		RetryBudget: relay.RetryBudget{Ratio: cfg.RetryBudget.Ratio, PerSecond: cfg.RetryBudget.PerSecond},
		Rank:        rankOptions(cfg),
		OnCancel:    onCancel(cfg.CancelledSlots()),
		Log:         log,
		Random:      rand.Float64,
		Nap:         nap(),
	}
}

func methodRules(from []config.MethodRule) []relay.MethodRule {
	rules := make([]relay.MethodRule, len(from))
	for i, rule := range from {
		rules[i] = relay.MethodRule{
			Pattern: rule.Pattern, Idempotent: rule.Idempotent, Retries: rule.Retries,
			HedgeAfter: rule.HedgeAfter, HedgeAuto: rule.HedgeAuto,
			OnCancel: onCancel(rule.OnCancel),
		}
		for _, name := range rule.RetryOn {
			if code, known := grpcwire.CodeNamed(name); known {
				rules[i].RetryOn = append(rules[i].RetryOn, code)
			}
		}
	}
	return rules
}
