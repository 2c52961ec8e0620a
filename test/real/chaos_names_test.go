//go:build real || soak

package real_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// chaosName is the name of the upstreams.
const chaosName = "workers.chaos.test"

// chaosNames are upstreams beside the workers, found by a name that stands for
// one or both of them. It belongs to one goroutine at a time.
type chaosNames struct {
	server    *nameServer
	port      int
	upstreams []netip.Addr
	inUse     int
}

// startChaosNames starts the upstreams, with the same port on two addresses,
// and the server of their name.
func startChaosNames(t *testing.T, ledger string) *chaosNames {
	t.Helper()
	n := &chaosNames{upstreams: []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")}}
	n.port = freePortOf(t, n.upstreams)
	worker := chaosWorker(t, ledger)
	for i, address := range n.upstreams {
		addr := netip.AddrPortFrom(address, uint16(n.port)).String()
		StartProcess(t, []string{"CABRANK_ADDR=" + addr, "CABRANK_WORKER=upstream-" + strconv.Itoa(i+1)}, worker[0], worker[1:]...)
		testkit.Eventually(t, patience, "an upstream at "+addr, func() bool {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
	}
	n.server = startNameServer(t, chaosName+".", n.upstreams[:1]...)
	n.inUse = 1
	return n
}

// freePortOf returns a port that was free on all addresses just now.
func freePortOf(t *testing.T, addresses []netip.Addr) int {
	t.Helper()
	for port := 30000; port < 32000; port++ {
		busy := slices.ContainsFunc(addresses, func(address netip.Addr) bool {
			listener, err := net.Listen("tcp", netip.AddrPortFrom(address, uint16(port)).String())
			if err == nil {
				listener.Close()
			}
			return err != nil
		})
		if !busy {
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

// config is what the configuration says of the upstreams.
func (n *chaosNames) config() string {
	return fmt.Sprintf("upstreams: ['dns:%s.:%d']\ndns: {servers: ['%s'], min_ttl: 1s}\n", chaosName, n.port, n.server.addr)
}

// change has the name stand for both upstreams, or for the other one alone, and
// returns when cabrank sends calls there.
func (n *chaosNames) change(o *operator) error {
	n.inUse = n.inUse%3 + 1 // the first, the second, both
	return n.point(o, [][]netip.Addr{n.upstreams[:1], n.upstreams[1:], n.upstreams}[n.inUse-1])
}

// restore has the name stand for what it stood for in the beginning.
func (n *chaosNames) restore(o *operator) error {
	n.inUse = 1
	return n.point(o, n.upstreams[:1])
}

func (n *chaosNames) point(o *operator, inUse []netip.Addr) error {
	n.server.point(inUse...)
	return o.await(changeLimit, fmt.Sprintf("upstreams %v", inUse), func(s *operatorStatus) bool {
		return n.shown(s, inUse) == nil
	})
}

// shown returns an error unless the status shows just these upstreams.
func (n *chaosNames) shown(s *operatorStatus, wanted []netip.Addr) error {
	var addresses []string
	for _, u := range s.Upstreams {
		addresses = append(addresses, u.Address)
	}
	for _, address := range wanted {
		if !slices.ContainsFunc(addresses, func(a string) bool { return strings.HasPrefix(a, address.String()+":") }) {
			return errors.New(address.String() + " is missing")
		}
	}
	if len(addresses) != len(wanted) {
		return errors.New("there are others")
	}
	return nil
}
