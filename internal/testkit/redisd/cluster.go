package redisd

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/cabrank/cabrank/internal/testkit"
)

// nodeTimeout is how long a node of a Cluster, or what a Sentinel watches, may be silent
// until another one takes its place.
const nodeTimeout = 700 * time.Millisecond

// Cluster is a Redis Cluster: masters that have equal parts of the slots, each with the
// same number of replicas.
type Cluster struct {
	Masters  []*Server
	Replicas []*Server
}

// StartCluster starts one for a test, on ports of the loopback interface.
func StartCluster(t testing.TB, masters, replicasEach int) *Cluster {
	t.Helper()
	all := launchAll(t, masters*(1+replicasEach), 2, func(_, port int) []string {
		return []string{
			"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(port + 1), "--cluster-announce-ip", "127.0.0.1",
			"--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10),
			"--cluster-replica-validity-factor", "0", "--repl-diskless-sync-delay", "0", "--cluster-require-full-coverage", "no",
		}
	})
	c := &Cluster{all[:masters], all[masters:]}
	const slots = 1 << 14
	for i, s := range c.Masters {
		s.do(t, "CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1)
		s.do(t, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for _, s := range all[1:] {
		_, port, _ := strings.Cut(all[0].Address, ":")
		bus, _ := strconv.Atoi(port)
		s.do(t, "CLUSTER", "MEET", "127.0.0.1", port, bus+1)
	}
	c.await(t, "know each other", func(s *Server) bool {
		return strings.Contains(s.text("CLUSTER", "INFO"), "cluster_known_nodes:"+strconv.Itoa(len(all)))
	})
	for i, s := range c.Replicas {
		s.do(t, "CLUSTER", "REPLICATE", c.Masters[i%masters].text("CLUSTER", "MYID"))
	}
	c.await(t, "be a Cluster", func(s *Server) bool {
		return strings.Contains(s.text("CLUSTER", "INFO"), "cluster_state:ok") &&
			strings.Count(s.text("CLUSTER", "NODES"), " connected ") >= masters
	})
	for _, s := range c.Replicas {
		testkit.Eventually(t, startWithin, "replicas to follow", func() bool {
			return strings.Contains(s.text("INFO", "replication"), "master_link_status:up")
		})
	}
	return c
}

// await waits until all nodes are so.
func (c *Cluster) await(t testing.TB, what string, is func(*Server) bool) {
	t.Helper()
	testkit.Eventually(t, startWithin, "nodes to "+what, func() bool {
		for _, s := range c.All() {
			if !is(s) {
				return false
			}
		}
		return true
	})
}

// All returns all nodes.
func (c *Cluster) All() []*Server { return append(append([]*Server{}, c.Masters...), c.Replicas...) }

// URL is an address of it that names two nodes.
func (c *Cluster) URL() string {
	return fmt.Sprintf("redis://%s?addr=%s", c.Masters[0].Address, c.Masters[1].Address)
}

// Kill ends all nodes.
func (c *Cluster) Kill() {
	for _, s := range c.All() {
		s.Kill()
	}
}

// Flush empties it.
func (c *Cluster) Flush(t testing.TB) {
	t.Helper()
	for _, s := range c.Masters {
		s.Flush(t)
	}
}

// Dial returns a connection that goes to the node that has a command's keys, by asking
// and being told, as clients of redigo do it.
func (c *Cluster) Dial() (redis.Conn, error) {
	for _, s := range c.All() {
		if conn, err := s.Dial(); err == nil {
			return &moving{Conn: conn}, nil
		}
	}
	return nil, fmt.Errorf("no node of %s", c.URL())
}

// moving is a connection that follows a slot to its node.
type moving struct{ redis.Conn }

// mostMoves bounds how often.
const mostMoves = 4

// Do implements redis.Conn.
func (m *moving) Do(name string, args ...any) (any, error) {
	return m.follow(func() (any, error) { return m.Conn.Do(name, args...) })
}

// DoWithTimeout implements redis.ConnWithTimeout.
func (m *moving) DoWithTimeout(timeout time.Duration, name string, args ...any) (any, error) {
	return m.follow(func() (any, error) { return redis.DoWithTimeout(m.Conn, timeout, name, args...) })
}

// ReceiveWithTimeout implements redis.ConnWithTimeout.
func (m *moving) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return redis.ReceiveWithTimeout(m.Conn, timeout)
}

func (m *moving) follow(do func() (any, error)) (answer any, err error) {
	for range mostMoves {
		answer, err = do()
		if err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
			return answer, err
		}
		next, dialErr := redis.Dial("tcp", strings.Fields(err.Error())[2])
		if dialErr != nil {
			return nil, dialErr
		}
		m.Close()
		m.Conn = next
	}
	return answer, err
}

// Move gives every eighth slot of a master to another one, while others read and write.
func (c *Cluster) Move(t testing.TB, from, to *Server) {
	t.Helper()
	source, target := c.open(t, from), c.open(t, to)
	sourceID, targetID := from.text("CLUSTER", "MYID"), to.text("CLUSTER", "MYID")
	host, port, _ := strings.Cut(to.Address, ":")
	for i, slot := range slotsOf(t, source, sourceID) {
		if i%8 != 0 {
			continue // each takes a millisecond or two
		}
		steps := []struct {
			at   redis.Conn
			args []any
		}{
			{target, []any{"SETSLOT", slot, "IMPORTING", sourceID}},
			{source, []any{"SETSLOT", slot, "MIGRATING", targetID}},
			{source, []any{"GETKEYSINSLOT", slot, 1000}},
			{target, []any{"SETSLOT", slot, "NODE", targetID}},
			{source, []any{"SETSLOT", slot, "NODE", targetID}},
		}
		for _, step := range steps {
			answer, err := step.at.Do("CLUSTER", step.args...)
			keys, _ := redis.Strings(answer, nil)
			if err == nil && len(keys) > 0 {
				_, err = step.at.Do("MIGRATE", redis.Args{host, port, "", 0, 5000, "KEYS"}.AddFlat(keys)...)
			}
			testkit.Need(t, err == nil, "CLUSTER %v: %v", step.args, err)
		}
	}
}

func (*Cluster) open(t testing.TB, s *Server) redis.Conn {
	t.Helper()
	conn, err := s.Dial()
	testkit.Must(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// slotsOf returns the slots that a master has.
func slotsOf(t testing.TB, conn redis.Conn, id string) (slots []int64) {
	t.Helper()
	parts, err := redis.Values(conn.Do("CLUSTER", "SLOTS"))
	testkit.Must(t, err)
	for _, part := range parts {
		var first, last int64
		var node []any
		_, err = redis.Scan(part.([]any), &first, &last, &node)
		testkit.Must(t, err)
		if owner, err := redis.String(node[2], nil); err != nil || owner != id {
			continue
		}
		for slot := first; slot <= last; slot++ {
			slots = append(slots, slot)
		}
	}
	return slots
}
