package redislink

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// renewEvery bounds how often connections are given up: a Redis that loads its data
	// says so to each command.
	renewEvery = time.Second
	// tellEvery bounds how often the log says so.
	tellEvery = time.Minute
)

// Client is the connections to a Redis. One that has become a replica, or that cannot serve
// now, keeps its connections: then all are closed, and the next command goes to whoever has
// the name or the address by then.
//
// Life: Open, anything, Close.
// Concurrency: all methods may be called from anywhere.
type Client struct {
	rueidis.Client
	// Where is what may be said of the address.
	Where string
	// Database is its number; 0 in a Cluster.
	Database int

	log     *slog.Logger
	writing atomic.Int64  // writes that are under way
	written atomic.Uint64 // writes of which something went
	ended   atomic.Uint64 // connections

	mu      sync.Mutex
	conns   map[*conn]struct{}
	renewed time.Time
	told    time.Time
}

// Open connects.
//
// Errors: one line that names where.
func Open(address string, log *slog.Logger) (*Client, error) {
	how, err := ClientOption(address)
	if err != nil {
		return nil, err
	}
	c := &Client{Where: strings.Join(how.InitAddress, ", "), Database: how.SelectDB, log: log, conns: map[*conn]struct{}{}}
	unix := how.DialCtxFn != nil // the address was unix://
	how.DialCtxFn = func(ctx context.Context, to string, dialer *net.Dialer, secure *tls.Config) (net.Conn, error) {
		return c.dial(ctx, to, unix, dialer, secure)
	}
	c.Client, err = rueidis.NewClient(how)
	if err != nil {
		if c.Client != nil {
			c.Close()
		}
		return nil, fmt.Errorf("redis at %s: %w", c.Where, err)
	}
	return c, nil
}

func (c *Client) dial(ctx context.Context, to string, unix bool, dialer *net.Dialer, secure *tls.Config) (net.Conn, error) {
	network := "tcp"
	if unix {
		network = "unix"
	}
	nc, err := dialer.DialContext(ctx, network, to)
	if err != nil {
		return nil, err
	}
	held := c.hold(nc)
	if secure == nil {
		return held, nil
	}
	secured := tls.Client(held, secure)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = held.Close() // nothing is lost with it
		return nil, err
	}
	return secured, nil
}

// IsCluster reports whether it is one, whose nodes tell who has what.
func (c *Client) IsCluster() bool { return c.Mode() == rueidis.ClientModeCluster }

// Do is that of rueidis, and Look. What was not written, since the connection had ended
// before, is sent over another one.
func (c *Client) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	written := c.Written()
	answer := c.Client.Do(ctx, command)
	if c.isUnsent(ctx, answer, written) {
		answer = c.Client.Do(ctx, command)
	}
	c.Look(answer.Error())
	return answer
}

// isUnsent reports whether an answer says that a connection had ended, and nothing was
// written since. Then rueidis keeps the command.
func (c *Client) isUnsent(ctx context.Context, answer rueidis.RedisResult, written uint64) bool {
	err := answer.NonRedisError()
	failed, isNet := errors.AsType[*net.OpError](err)
	return err != nil && (!isNet || failed.Op != "dial") && !c.HasWritten(written, err) && ctx.Err() == nil
}

// DoMulti is that of rueidis, otherwise as Do.
func (c *Client) DoMulti(ctx context.Context, commands ...rueidis.Completed) []rueidis.RedisResult {
	written := c.Written()
	answers := c.Client.DoMulti(ctx, commands...)
	if len(answers) > 0 && c.isUnsent(ctx, answers[0], written) {
		answers = c.Client.DoMulti(ctx, commands...)
	}
	for _, answer := range answers {
		if c.Look(answer.Error()) {
			break
		}
	}
	return answers
}

// IsUnfit reports whether an error says that Redis has not done what it was asked, and that
// whoever has its place may: it has become a replica, or does not know its data yet.
func IsUnfit(err error) bool {
	said, ok := rueidis.IsRedisErr(err)
	if !ok || said.IsNil() {
		return false
	}
	word, _, _ := strings.Cut(said.Error(), " ")
	return slices.Contains([]string{"READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "NOAUTH", "UNBLOCKED"}, word)
}

// Look closes all connections if an error IsUnfit, and reports whether it is. A Cluster
// keeps them: there, the client asks the nodes who has what.
func (c *Client) Look(err error) bool {
	if err == nil || !IsUnfit(err) {
		return false
	}
	if !c.IsCluster() {
		c.renew(err)
	}
	return true
}

func (c *Client) renew(why error) {
	c.mu.Lock()
	now := time.Now()
	if now.Sub(c.renewed) < renewEvery {
		c.mu.Unlock()
		return
	}
	c.renewed = now
	tell := now.Sub(c.told) >= tellEvery
	if tell {
		c.told = now
	}
	all := make([]*conn, 0, len(c.conns))
	for held := range c.conns {
		all = append(all, held)
	}
	c.mu.Unlock()
	if tell {
		c.log.Warn("redis does not serve on connections that it keeps: they are made anew", "error", why.Error())
	}
	for _, held := range all {
		_ = held.Close() // it may have ended already
	}
}

// errReplica is of a Redis that takes no calls, and whose events nobody hears.
var errReplica = errors.New("it is a replica")

// Check asks Redis whether it serves, on a connection of the client, and how late it is
// there: in milliseconds since 1970, 0 if it does not say. key has the node of a Cluster.
//
// Errors: why it does not serve. A replica has all connections be made anew.
func (c *Client) Check(ctx context.Context, on rueidis.CoreClient, key string) (now int64, err error) {
	commands := []rueidis.Completed{on.B().Time().Build().SetSlot(key)}
	if !c.IsCluster() {
		commands = append(commands, on.B().Role().Build())
	}
	answers := on.DoMulti(ctx, commands...)
	for _, answer := range answers {
		err := answer.Error()
		if c.Look(err) || answer.NonRedisError() != nil {
			return 0, err
		}
	}
	if role, err := answers[len(answers)-1].ToArray(); err == nil && len(role) > 0 && !c.IsCluster() { // else a user who may not ask
		if is, _ := role[0].ToString(); is == "slave" {
			c.renew(errReplica)
			return 0, errReplica
		}
	}
	if clock, err := answers[0].AsIntSlice(); err == nil && len(clock) == 2 {
		now = clock[0]*1000 + clock[1]/1000
	}
	return now, nil
}

// Written is for HasWritten.
func (c *Client) Written() uint64 { return c.written.Load() }

// HasWritten reports whether a command that has failed so may have gone to Redis since
// Written returned this. If the error says which connection ended, that one alone counts.
func (c *Client) HasWritten(since uint64, failed error) bool {
	if broken, ok := errors.AsType[brokenError](failed); ok {
		return broken.of.writing.Load() || broken.of.wrote.Load() > since // in this order, as Write goes in the other
	}
	return c.writing.Load() > 0 || c.written.Load() != since
}

// Ended is how many connections have.
func (c *Client) Ended() uint64 { return c.ended.Load() }
