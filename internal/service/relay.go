package service

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/cabrank/cabrank/internal/admin"
	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/cli"
	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/door"
	"github.com/cabrank/cabrank/internal/methods"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/schema"
	"github.com/cabrank/cabrank/internal/stats"
	"github.com/cabrank/cabrank/internal/web"
	"github.com/cabrank/cabrank/internal/webdoors"
)

// Bounds of callers over HTTP/1 and HTTP/2 alike.
const (
	headerList    = 64 << 10        // bytes of a header list: four times what servers take by themselves, so that tokens fit
	handshakeTime = 5 * time.Second // until a connection has begun to speak: a few lost packets around the world
)

// relayOptions are those that a reload may change, and the bounds that have no key: nobody
// has had a reason to turn one. docs/invariants.md has what each bounds.
func (s *service) relayOptions(cfg *config.Config, log *slog.Logger) relay.Options {
	return relay.Options{
		Shards:      cfg.Shards,
		QueueLength: cfg.Queue.Length, QueueTimeout: cfg.Queue.Timeout,
		CallTimeout:  cfg.CallTimeout,
		StallTimeout: cfg.StallTimeout,
		HangTimeout:  cfg.HangTimeout,
		MinReady:     s.fewest(cfg.Workers.MinReady),
		SlotsMin:     cfg.Workers.Slots.Min, SlotsMax: cfg.Workers.Slots.Max,
		Lanes: cfg.Lanes, BalanceKey: cfg.BalanceKey(),
		Methods:     cfg.Methods,
		OnCancel:    cfg.CancelledSlots(),
		OwnServices: map[string]relay.OwnServices{"health": relay.OwnHealth, "none": relay.OwnNone}[cfg.OwnServices],
		Explain:     cfg.Explain,
		Proxies:     cfg.Proxies,
		Keys: callers.Keys{
			By: cfg.Fair.Key.By, Metadata: cfg.Fair.Key.Name, Weights: cfg.Fair.Weights,
			Rate: cfg.Limits.CallsPerSecond, Burst: cfg.Limits.KeyBurst(), Concurrent: cfg.Limits.Calls,
		},
		Limits: relay.Limits{
			Connections: openable(cfg, admin.OpenFiles(), log),
			Descriptors: lastOfCallers(admin.OpenFiles()),
			Idle:        cfg.Limits.IdleTimeout, Age: cfg.Limits.ConnectionAge,
			Handshake: handshakeTime,
			Header:    10 * time.Second, // for headers, or another frame without data, that have begun
			Window:    64 << 10,         // bytes that a call may send before it has a slot: one message, mostly (R11)
			MaxWindow: 1 << 20,          // bytes of a running call on their way, each direction: 80 Mbit/s over 100 ms (R11)
			Buffer:    16 << 20,         // that wait for one connection: what MaxStreams calls may send before they have slots (R11)
			Frame:     16 << 10,         // the least that HTTP/2 allows (RFC 9113 4.2): no call waits for a longer frame of another
		},
		Rank: rankOptions(cfg),
		// Retries and hedges of all calls together, so that they do not make an outage worse:
		// of the calls of the last 10 s, and however few calls there are.
		RetryBudget: stats.RetryBudget{Ratio: 0.1, PerSecond: 10},
		BufferTotal: cfg.BufferTotal,
		ReplayBytes: 64 << 10, // of a request that are kept so that the call can be sent to another worker (R3)
		ReplayTotal: 16 << 20, // of all requests together
		AbsorbBytes: 1 << 20,  // of an answer that is read ahead of its caller: most are smaller, and free their worker at once (R9)
		HeaderList:  headerList,
		MaxStreams:  250,             // calls that one connection may have open: libraries open another one then, or wait
		Resets:      1000,            // calls that a connection may cancel in the long run: no honest caller comes near (CVE-2023-44487)
		KeepAlive:   5 * time.Minute, // of silence of an endpoint elsewhere: many servers punish who asks more often (R15)
		MaxHops:     16,              // cabranks that a call may have come through: more is a cycle (R10)
		Log:         log,
		Random:      rand.Float64,
		Nap:         nap(),
	}
}

// rankOptions are those of the rank but for the lanes, of which the relay has a part.
func rankOptions(cfg *config.Config) rank.Options {
	o := rank.Options{QueueLength: cfg.Queue.Length, StreamSlots: cfg.StreamSlots}
	if !cfg.Queue.Shed {
		o.Admit = rank.BoundedLength
	}
	if !cfg.Queue.NewestFirst {
		o.Order = rank.FIFO
	}
	return o
}

// webLimits are those of callers that speak HTTP/1.
func webLimits(cfg *config.Config) web.Limits {
	return web.Limits{Head: handshakeTime, HeadBytes: headerList, Alone: socketsAlone(cfg), Proxies: cfg.Proxies}
}

// openSchema makes what knows the methods of the workers, for callers in JSON. Workers are
// asked for them when somebody needs one.
func (s *service) openSchema() (err error) {
	options := schema.Options{
		Open: methods.Reflection(s.relay), Limit: s.cfg.Queue.Timeout,
		Failed: func(err error) { s.log.Warn("workers do not describe their methods", "error", err) },
	}
	if len(s.cfg.Descriptors) > 0 {
		if options.Files, err = schema.ReadFiles(s.cfg.Descriptors); err != nil {
			return cli.UsageError(fmt.Errorf("descriptors: %w", err))
		}
	}
	s.schema = schema.New(options)
	return nil
}

// webDoors has callers of the web call the workers.
func (s *service) webDoors() *webdoors.Doors {
	return webdoors.New(webdoors.Options{
		Origins: func() door.Origins { return s.current().Web.Origins }, Schema: s.schema, MayRepeat: s.relay.MayRepeat,
		PassOn: s.cfg.Speak == "any", Log: s.log,
	})
}
