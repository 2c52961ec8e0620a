package h2

import (
	"time"
)

// Chore is a kind of work that a peer can cause, again and again, without being served.
// Honest peers cause a little of each; a peer that causes more than its allowance loses
// its connection.
type Chore uint8

// The chores. Each has an allowance per connection (Allowances); the name of
// the counter is Chore.String.
const (
	// RapidReset is a RST_STREAM of the peer (CVE-2023-44487). Each stream that
	// we have answered earns one: a caller that takes answers may also cancel.
	RapidReset Chore = iota
	// MadeReset is a stream that we had to reset because the peer broke a rule
	// of streams (CVE-2025-8671), or refused for the same reason.
	MadeReset
	// ExcessStream is a stream above the announced limit, or behind our GOAWAY,
	// or a header block for a stream that is no longer open.
	ExcessStream
	// LargeList is a header list above the announced limit.
	LargeList
	// EmptyData is a DATA frame without data that does not end its stream.
	EmptyData
	// SettingsFlood is a SETTINGS frame, its acknowledgement, or a GOAWAY.
	SettingsFlood
	// PingFlood is a PING or the answer to one. Every frame of an answer or a
	// request that we send earns one: callers that measure their bandwidth send
	// a PING for each round trip in which they were sent DATA.
	PingFlood
	// PriorityFlood is a PRIORITY frame. Each stream earns two.
	PriorityFlood
	// UnknownFlood is a frame of a type that we do not know. Each stream earns
	// two.
	UnknownFlood
	// WindowFlood is a WINDOW_UPDATE. Each stream earns two, and each DATA frame
	// that we send two and one more for each 16 bytes: a frame may hold many small
	// messages, and C-core returns credit as they are taken. A frame that was cut
	// short by the peer's window earns one for each 64 bytes alone, so that a peer
	// that opens its window byte by byte earns nothing.
	WindowFlood

	// Chores is how many there are.
	Chores
)

// String returns the stable name under which a chore is counted.
func (k Chore) String() string {
	return [...]string{
		RapidReset:    "rapid_reset",
		MadeReset:     "made_reset",
		ExcessStream:  "excess_stream",
		LargeList:     "large_header_list",
		EmptyData:     "empty_data",
		SettingsFlood: "settings_flood",
		PingFlood:     "ping_flood",
		PriorityFlood: "priority_flood",
		UnknownFlood:  "unknown_frame_flood",
		WindowFlood:   "window_update_flood",
	}[k]
}

// The names of the other floods, which have bounds of their own; see Conn.Feed.
const (
	tokenContinuation = "continuation_flood" // a header block in too many or too large pieces
	tokenSettings     = "settings_size_flood"
	tokenControl      = "control_flood" // frames that wait for a peer that does not read
	tokenSlowHeaders  = "slow_headers"  // a header block that does not come to its end
	tokenSlowFrame    = "slow_frame"    // the same of another frame
	tokenOutput       = "output_flood"  // answers that wait for a caller that does not read
	tokenBuffer       = "buffer_full"   // the largest part of a budget that is exceeded; see Conn.GiveUp
)

// Floods returns the reasons of all ConnErrors by which the engine defends itself. All
// other reasons are breaches of the protocol.
func Floods() []string {
	names := make([]string, 0, Chores+8)
	for k := range Chores {
		names = append(names, k.String())
	}
	return append(names, tokenContinuation, tokenSettings, tokenControl, tokenOutput, tokenSlowHeaders, tokenSlowFrame, tokenBuffer, CompressionBomb.Token())
}

// Allowance is how many chores of one kind a connection may cause: Burst at once, and in
// the long run one in every Every.
//
// The zero value sets no limit.
type Allowance struct {
	Burst int
	Every time.Duration
}

// Allowances has one Allowance for each chore.
type Allowances [Chores]Allowance

// CallerAllowances are the allowances of a caller's connection.
//
// They are far above the use of honest callers, and so low that none of them, used to
// the full, takes more than a few percent of a core.
func CallerAllowances() Allowances {
	return Allowances{
		// 500 cancelled calls a second are normal where deadlines are short.
		RapidReset: {2000, time.Second / 1000},
		// No honest caller does any.
		MadeReset: {100, time.Second / 10},
		// Nor these, once it has seen our SETTINGS; before, it may begin with as
		// many as it likes.
		ExcessStream: {1000, time.Second / 100},
		// The caller is told each time, and may need a while to understand.
		LargeList: {1000, time.Second / 100},
		EmptyData: {1000, time.Second / 100},
		// C-core tells a new window up to ten times a second.
		SettingsFlood: {200, time.Second / 50},
		PingFlood:     {200, time.Second / 10},
		PriorityFlood: {200, time.Second / 10},
		UnknownFlood:  {200, time.Second / 10},
		WindowFlood:   {1000, time.Second / 100},
	}
}

// WorkerAllowances are the allowances of a worker's connection. They are larger, because
// the calls of many callers end with the connection. A worker may reset every stream
// that we have opened: a refusal is a RST_STREAM, and normal (R1).
func WorkerAllowances() Allowances {
	return Allowances{
		EmptyData:     {10_000, time.Second / 1000},
		SettingsFlood: {2000, time.Second / 100},
		PingFlood:     {2000, time.Second / 100},
		PriorityFlood: {2000, time.Second / 100},
		UnknownFlood:  {2000, time.Second / 100},
		WindowFlood:   {10_000, time.Second / 1000},
	}
}

const (
	// maxEarned bounds the earned chores of one kind that can be saved up.
	maxEarned = 10_000
	// maxFragments bounds the frames of one header block (CVE-2024-27316 and its
	// kin): of full size they hold four times the largest list that can be
	// configured, of one octet each an ordinary request.
	maxFragments = 256
	// maxSettings bounds the settings in one frame: each may have us look at
	// every stream. There are seven, and unknown ones to ignore.
	maxSettings = 32
)

// guard is the unused part of one connection's allowances.
//
// Shape: an allowance is kept as the time at which it will be whole again
// (the virtual scheduling form of a leaky bucket), so that it needs no refill
// and is exact at any time.
type guard struct {
	now   time.Duration // of the last Feed, also for Conn.Heard and Conn.Due
	whole [Chores]time.Duration
	taken [Chores]uint64 // used earned chores

	// Services to the peer, which earn chores.
	opened   uint64 // streams
	answered uint64 // streams that we have ended
	sent     uint64 // DATA frames and header blocks
	credit   uint64 // WINDOW_UPDATE frames for that DATA
}

// spend counts one chore. Errors: a ConnError when the allowance is used up.
func (c *Conn) spend(k Chore) error {
	a, g := &c.cfg.Allow[k], &c.guard
	if a.Burst == 0 || g.draw(k) {
		return nil
	}
	whole := max(g.whole[k], g.now) + a.Every
	if whole-g.now > time.Duration(a.Burst)*a.Every {
		return connError(EnhanceYourCalm, k.String())
	}
	g.whole[k] = whole
	return nil
}

// draw uses one earned chore, and reports false if none is left.
func (g *guard) draw(k Chore) bool {
	earned := g.earned(k)
	left := earned - g.taken[k]
	if left == 0 {
		return false
	}
	if left > maxEarned {
		g.taken[k] = earned - maxEarned
	}
	g.taken[k]++
	return true
}

// earned is how many chores of a kind were ever earned.
func (g *guard) earned(k Chore) uint64 {
	switch k {
	case RapidReset:
		return g.answered
	case PingFlood:
		return g.sent
	case PriorityFlood, UnknownFlood:
		return 2 * g.opened
	case WindowFlood:
		return 2*g.opened + g.credit
	default:
		return 0
	}
}

// served notes a DATA frame of n bytes. cut means that the peer's window has limited its
// length.
func (g *guard) served(n int, cut bool) {
	g.sent++
	if cut {
		g.credit += uint64(n) / 64
	} else {
		g.credit += 2 + uint64(n)/16
	}
}

// largeBegun is the size up to which an incomplete frame or header block is ordinary.
const largeBegun = defaultMaxFrame

// Excess returns the bytes that a connection uses beyond those that every connection
// may use: for an incomplete frame or header block, and for answers to a peer that does
// not read. 0 is the usual case.
func (c *Conn) Excess() (bytes int) {
	if begun := cap(c.partial) + cap(c.frag); begun > largeBegun {
		bytes += begun
	}
	if c.stuck() {
		bytes += cap(c.out)
	}
	return bytes
}

// stuck reports whether the output is larger than DATA alone can make it.
func (c *Conn) stuck() bool { return cap(c.out) > 2*c.cfg.OutputHigh }

func (c *Conn) tellExcess() {
	if now := c.Excess(); now != c.excess {
		c.excess = now
		c.cfg.Excess(c, now)
	}
}

// GiveUp ends the connection because of its Excess, and frees that at once. It may be
// called where a Handler may call the connection, and by Config.Excess. A peer that
// does not read is not told why.
//
// Errors: as Feed; nil without excess.
func (c *Conn) GiveUp() error {
	if c.Excess() == 0 || c.state == failed {
		return nil
	}
	c.pool.Put(c.partial)
	c.pool.Put(c.frag)
	c.partial, c.frag = nil, nil
	why := connError(EnhanceYourCalm, tokenBuffer)
	if !c.stuck() {
		return c.fail(why)
	}
	c.pool.Put(c.out)
	c.state, c.out, c.outOff = failed, nil, 0
	return why
}
