package caller

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// DefaultDNSInterval is how often grpc-go asks a name server again at most, unless
// told otherwise. It asks when a connection ends, not by the clock.
const DefaultDNSInterval = 30 * time.Second

const mostConnections = 10_000

// Strategy is how calls share connections: spread over so many of them, in turn, or in
// another way.
type Strategy int

const (
	// Single has all calls on one connection.
	Single Strategy = 0
	// PerCall opens a connection for each call, and closes it behind the answer. The call
	// has waited for the connection; what closing costs is not in its latency.
	PerCall Strategy = -1
	// RoundRobin has a connection to each address of a name, and spreads calls over those
	// in turn, as grpc-go does with the policy round_robin.
	RoundRobin Strategy = -2
)

// ParseStrategy reads a strategy: single, per-call, round-robin, or the number of
// connections of a pool, 1 to 10,000.
//
// Errors: one line for anything else.
func ParseStrategy(text string) (Strategy, error) {
	for _, s := range []Strategy{Single, PerCall, RoundRobin} {
		if text == s.String() {
			return s, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostConnections {
		return 0, fmt.Errorf("connections %.40q: want single, per-call, round-robin or a number from 1 to %d", text, mostConnections)
	}
	return Strategy(n), nil
}

// UnmarshalText is ParseStrategy.
func (s *Strategy) UnmarshalText(text []byte) (err error) {
	*s, err = ParseStrategy(string(text))
	return err
}

// MarshalText is String.
func (s Strategy) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String writes the strategy as ParseStrategy reads it.
func (s Strategy) String() string {
	switch s {
	case Single:
		return "single"
	case PerCall:
		return "per-call"
	case RoundRobin:
		return "round-robin"
	}
	return strconv.Itoa(int(s))
}

// Lasting is how many connections live as long as the client: 0 with PerCall, and 1 for
// each address with RoundRobin.
func (s Strategy) Lasting() int {
	if s == PerCall {
		return 0
	}
	return max(int(s), 1)
}

// MostUnderWay is how many calls may be under way with the descriptors that this
// process may have: traffic.DefaultMost, or fewer where each call takes one. It is
// meant for traffic.Options.Most.
func (s Strategy) MostUnderWay() int {
	const others = 100 // descriptors that are no connection
	var limit syscall.Rlimit
	if s != PerCall || syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return traffic.DefaultMost
	}
	most := uint64(traffic.DefaultMost) + others
	return max(int(min(limit.Cur, most))-others, 1)
}

// CheckTarget says in a line what is wrong with a target of Options, or nil: of a wrong one
// grpc-go says what its parts make of it, and without a port it calls 443.
func CheckTarget(target string) error {
	scheme, endpoint, _ := strings.Cut(target, ":")
	switch known := resolver.Get(scheme) != nil; {
	case known && strings.HasPrefix(scheme, "unix"):
		return nil
	case known:
		if rest, hasAuthority := strings.CutPrefix(endpoint, "//"); hasAuthority {
			_, endpoint, _ = strings.Cut(rest, "/")
		}
	case strings.HasPrefix(endpoint, "//"):
		example := endpoint[2:]
		if CheckTarget(example) != nil {
			example = "localhost:8080"
		}
		return fmt.Errorf("address %.80q: want host:port without %.20s://, such as %.80s", target, scheme, example)
	default:
		endpoint = target
	}
	_, port, err := net.SplitHostPort(endpoint)
	missing := ""
	if port == "" && (err == nil || strings.Contains(err.Error(), "missing port")) {
		missing = " has no port"
	}
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || missing != "" {
		return fmt.Errorf("address %.80q%s: want host:port, such as localhost:8080, or unix:///path", target, missing)
	}
	return nil
}

// target completes a target for the strategy: a name is looked up by DNS.
func (s Strategy) target(target string) string {
	if s == RoundRobin && !strings.Contains(target, ":/") {
		return "dns:///" + target
	}
	return target
}

// ParseMetadata reads NAME:VALUE pairs; nil if there are none.
//
// Errors: one line.
func ParseMetadata(pairs []string) (md metadata.MD, err error) {
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, ":")
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case !ok || name == "":
			return nil, fmt.Errorf("metadata %.80q: want NAME:VALUE", pair)
		case strings.HasPrefix(name, "grpc-"):
			return nil, fmt.Errorf("metadata %.80q: names that begin with grpc- are gRPC's own", pair)
		}
		md = metadata.Join(md, metadata.Pairs(name, strings.TrimSpace(value)))
	}
	return md, nil
}
