package redis

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"

	"github.com/redis/rueidis"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/redislink"
)

// mostOutlets bounds the outlets of a Cluster; with more masters some share one.
const mostOutlets = 64

// masters is one Redis, or the masters of a Cluster, with an outlet for the commands to
// each, so that a silent master does not hold up others.
//
// A slot keeps its first outlet even if it moves to another master: the client finds the
// master, and the events of a channel keep their order.
type masters struct {
	client  *redislink.Client
	outlets []*outlet
	ids     []string // for each outlet, the id of the list of results there
	bySlot  []uint8  // index of the outlet; empty with one outlet
}

// openMasters connects. Errors: one line that names the address.
func openMasters(ctx context.Context, address string, log *slog.Logger, counts *counts) (*masters, error) {
	client, err := redislink.Open(address, log)
	if err != nil {
		return nil, err
	}
	m, n := &masters{client: client}, 1
	if client.IsCluster() {
		if n, err = m.divide(ctx); err != nil {
			client.Close()
			return nil, fmt.Errorf("redis at %s: %w", client.Where, err)
		}
	}
	for _, id := range m.names(n) {
		m.outlets = append(m.outlets, newOutlet(client, log, counts, redislink.ResultsKey(id), n))
		m.ids = append(m.ids, id)
	}
	return m, nil
}

// divide gives each slot of a Cluster an outlet, and returns the number of outlets.
func (m *masters) divide(ctx context.Context) (n int, err error) {
	for _, node := range m.client.Nodes() { // the first one that answers
		var parts []rueidis.RedisMessage
		parts, err = node.Do(ctx, node.B().ClusterSlots().Build()).ToArray()
		if err == nil && len(parts) > 0 {
			return m.assign(parts)
		}
	}
	if err == nil {
		err = rueidis.ErrNoSlot
	}
	return 0, err
}

// slots is the number of slots of a Cluster.
const slots = 1 << 14

var errSlots = errors.New("not an answer of CLUSTER SLOTS")

// readPart reads one part of the answer of CLUSTER SLOTS: first slot, last slot, the
// master, its replicas; a node is host, port, id and more.
func readPart(part rueidis.RedisMessage) (first, last int64, master string, ok bool) {
	fields, err := part.ToArray()
	if err != nil || len(fields) < 3 {
		return 0, 0, "", false
	}
	first, err1 := fields[0].AsInt64()
	last, err2 := fields[1].AsInt64()
	node, err3 := fields[2].ToArray()
	if err1 != nil || err2 != nil || err3 != nil || len(node) < 3 || first < 0 || last >= slots {
		return 0, 0, "", false
	}
	master, err = node[2].ToString()
	return first, last, master, err == nil
}

// assign gives each master an outlet, and its slots.
func (m *masters) assign(parts []rueidis.RedisMessage) (n int, err error) {
	m.bySlot = make([]uint8, slots)
	known := map[string]int{}
	for _, part := range parts {
		first, last, master, ok := readPart(part)
		if !ok {
			return 0, errSlots
		}
		if _, ok := known[master]; !ok {
			known[master] = len(known) % mostOutlets
		}
		for slot := first; slot <= last; slot++ {
			m.bySlot[slot] = uint8(known[master])
		}
	}
	return min(len(known), mostOutlets), nil
}

// index returns the index of a key's outlet.
func (m *masters) index(key string) int {
	if len(m.bySlot) == 0 {
		return 0
	}
	command := rueidis.Completed{}.SetSlot(key)
	return int(m.bySlot[command.Slot()])
}

func (m *masters) outlet(key string) *outlet { return m.outlets[m.index(key)] }

// names returns a new id for each of n outlets.
func (m *masters) names(n int) []string {
	names := make([]string, n)
	for missing := len(names); missing > 0; {
		id := broker.NewID()
		if i := m.index(redislink.ResultsKey(id)); names[i] == "" {
			names[i] = id
			missing--
		}
	}
	return names
}

// anyNode returns a random node; nil if none is known.
func (m *masters) anyNode() (address string, node rueidis.Client) {
	all := m.client.Nodes()
	if len(all) == 0 {
		return "", nil
	}
	skip := rand.N(len(all))
	for address, node = range all {
		if skip == 0 {
			break
		}
		skip--
	}
	return address, node
}

// has reports whether address is still the address of a node.
func (m *masters) has(address string) bool {
	_, ok := m.client.Nodes()[address]
	return ok
}
