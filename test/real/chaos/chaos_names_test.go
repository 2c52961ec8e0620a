//go:build real || soak

package chaos_test

import (
	"github.com/cabrank/cabrank/internal/testkit/nameserver"

	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// chaosName is the name of the upstreams.
const chaosName = "workers.chaos.test"

// chaosNames are upstreams beside the workers, found by a name that stands for
// one or both of them. It belongs to one goroutine at a time.
type chaosNames struct {
	zone      *nameserver.Zone
	port      int
	upstreams []netip.Addr
	inUse     int
}

// startChaosNames starts the upstreams, with the same port on two addresses,
// and the server of their name.
func startChaosNames(t *testing.T, ledger string) *chaosNames {
	t.Helper()
	n := &chaosNames{upstreams: []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.3")}}
	n.port = testkit.FreePorts(t, 1, n.upstreams[0].String(), n.upstreams[1].String())
	worker := harness.ChaosWorker(t, ledger)
	for i, address := range n.upstreams {
		addr := netip.AddrPortFrom(address, uint16(n.port)).String()
		harness.StartProcess(t, []string{"CABRANK_ADDR=" + addr, "CABRANK_WORKER=upstream-" + strconv.Itoa(i+1)}, worker[0], worker[1:]...)
		testkit.Eventually(t, harness.Patience, "an upstream at "+addr, func() bool {
			conn, err := net.Dial("tcp", addr)
			if err == nil {
				conn.Close()
			}
			return err == nil
		})
	}
	n.zone = nameserver.StartZone(t)
	n.say(n.upstreams[:1])
	n.inUse = 1
	return n
}

// config is what the configuration says of the upstreams.
func (n *chaosNames) config() string {
	return fmt.Sprintf("upstreams: ['dns:%s.:%d']\ndns: {servers: ['%s']}\n", chaosName, n.port, n.zone.Addr)
}

// change has the name stand for both upstreams, or for the other one alone, and
// returns when cabrank sends calls there.
func (n *chaosNames) change(o *harness.Operator) error {
	n.inUse = n.inUse%3 + 1 // the first, the second, both
	return n.point(o, [][]netip.Addr{n.upstreams[:1], n.upstreams[1:], n.upstreams}[n.inUse-1])
}

// restore has the name stand for what it stood for in the beginning.
func (n *chaosNames) restore(o *harness.Operator) error {
	n.inUse = 1
	return n.point(o, n.upstreams[:1])
}

func (n *chaosNames) point(o *harness.Operator, inUse []netip.Addr) error {
	n.say(inUse)
	return o.Await(harness.ChangeLimit, fmt.Sprintf("upstreams %v", inUse), func(s *harness.OperatorStatus) bool {
		return n.shown(s, inUse) == nil
	})
}

// say has the name stand for addresses, for the least time that cabrank believes.
func (n *chaosNames) say(inUse []netip.Addr) {
	var records []string
	for _, address := range inUse {
		records = append(records, fmt.Sprintf("%s. 1 IN A %s", chaosName, address))
	}
	n.zone.Say(records...)
}

// shown returns an error unless the status shows just these upstreams.
func (n *chaosNames) shown(s *harness.OperatorStatus, wanted []netip.Addr) error {
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
