// Package h2 is one HTTP/2 connection at frame level: frames, header blocks,
// streams, flow control, write buffer. It knows no gRPC and no descriptor.
//
// Start from Conn (the engine), Stream (one side of a call) and Handler (its
// callbacks). The engine does no I/O: its driver calls Feed with bytes that arrived,
// sends the bytes of Output, and reports with Sent how many the kernel accepted. By
// default:
//
//  1. DATA is passed on as it arrives, also in the middle of a frame, and is
//     never collected here; every other frame is handled when it is complete.
//  2. Header blocks are transcoded to a stateless form (see Block), so that a
//     block that came from one connection can be written on any other.
//  3. Connection credit is returned on receipt, stream credit only when the
//     owner says that the bytes have left (Credit).
//  4. Sending is pulled: Writable returns how many bytes of DATA can go now, Want
//     asks for a callback when more can.
//
// It does not prioritize (RFC 9113 5.3.2), push, or keep waiting data.
package h2

import (
	"math"
	"time"
)

// Handler is told what the engine reads. All methods run inside Feed, Sent,
// Returned, Unsend or Close, under the lock of the shard; they may call any
// method of any connection of the same shard, but not Feed, Sent or Close of
// this one. Byte slices and blocks are valid until the method returns.
type Handler interface {
	MessageHandler
	EndHandler
	SendHandler
	ConnHandler
}

// MessageHandler is told what arrives on a stream.
type MessageHandler interface {
	// Headers is told a request (server role), a final or interim response
	// (client role), or trailers, validated and transcoded. With end the peer
	// has finished sending.
	Headers(s *Stream, b *Block, end bool)
	// TooLarge is told of a header list above the announced limit; the block is
	// not usable. The stream is open.
	TooLarge(s *Stream, end bool)
	// Data is told bytes of a DATA frame, without padding, as they arrive; p
	// may be empty. With end the peer has finished sending.
	Data(s *Stream, p []byte, end bool)
}

// EndHandler is told of streams that end before both sides have finished. The
// stream is already closed.
type EndHandler interface {
	// Reset is told that the peer has reset the stream (broken is false), or has
	// broken a rule of this stream, so that the engine has reset it (broken is
	// true).
	Reset(s *Stream, code ErrCode, broken bool)
	// Lost is told that the connection ended while the stream was open; sent
	// reports whether any byte of the stream's HEADERS reached the kernel
	// (client role).
	Lost(s *Stream, sent bool)
}

// SendHandler is told that sending can go on.
type SendHandler interface {
	// Writable is told that at least one byte of DATA can be written on a
	// stream whose owner had called Want.
	Writable(s *Stream)
}

// ConnHandler is asked and told what concerns the connection.
type ConnHandler interface {
	// Accept decides by the head of a request which handler gets the stream, and returns
	// the Stream to use (server role only); nil refuses it with REFUSED_STREAM. Headers
	// is called with the same block next, unless the connection fails before; or
	// TooLarge, and then b has only the fields before the limit. The stream is open then.
	Accept(c *Conn, b *Block) *Stream
	// GoAway is told that the peer accepts no stream above last.
	GoAway(c *Conn, last uint32, code ErrCode)
	// Pong is told that the peer has answered a PING.
	Pong(c *Conn, data [8]byte)
}

// Waker is told when a connection whose output was empty has output.
// It runs under the shard's lock and must not call the connection.
type Waker interface{ Dirty(*Conn) }

// Config is what the connections of one door or one kind of upstream share.
// It is immutable.
type Config struct {
	Server bool       // the peer is a caller
	Watch  *WatchList // fields to find in header blocks, see also Conn.Watch; with ":status" for the client role

	MaxStreams uint32 // announced to callers (server role), R11; 0: not announced
	// FrameTime is how long the peer may take to finish a frame other than DATA,
	// or a header block, once it has begun; 0: for ever. The driver asks Overdue.
	FrameTime time.Duration

	MaxHeaderList uint32 // announced, RFC 9113 6.5.2, bytes; for larger lists TooLarge is called
	MaxFrame      uint32 // announced, RFC 9113 4.2, bytes; 0: 16 KiB, the least allowed value
	Window        int32  // announced window of a stream, bytes, R11
	WindowPressed int32  // the same for new connections once half of the budget is used; 0: as Window
	MaxWindow     int32  // a stream's window grows up to this as its bytes are forwarded, R11
	ConnWindow    int32  // window of the connection, bytes, at least 65,535
	OutputHigh    int    // no DATA is added to an output buffer that holds so many bytes

	Allow Allowances // of work that the peer may cause without being served

	// Settled, if it is not nil, is told that SETTINGS of the peer are in force.
	// In the client role nothing but the greeting has left before the first.
	Settled func(c *Conn)
	// Excess, if it is not nil, is told at the end of Feed that Conn.Excess has
	// changed. It may call GiveUp.
	Excess func(c *Conn, bytes int)
}

// Bounds that protect a connection from its peer.
const (
	// maxControl bounds the control frames that wait for a peer that makes us
	// answer but does not read.
	maxControl = 10_000
	// maxBlocks bounds the answers that wait for a caller that does not read
	// them, in header blocks of the largest size for each stream it may have:
	// a caller that takes its answers before it makes more calls is never further
	// behind.
	maxBlocks = 2
	// blockFactor bounds a compressed header block, with CONTINUATION, to blockFactor
	// times the header list limit: Huffman never expands a string to more than 30/8 of
	// its length.
	blockFactor = 4
	// assumedStreams is how many streams are opened on a worker before its SETTINGS
	// tell its limit: every peer should take as many (RFC 9113 6.5.2). More could be
	// refused, all at once.
	assumedStreams = 100
)

type readState uint8

const (
	wantPreface readState = iota
	wantSettings
	reading
	failed // nothing more is read
)

// Conn is the engine of one connection.
//
// Life: New, then Feed and Output/Sent in any order, then Close exactly once.
// Concurrency: everything is guarded by the lock of the connection's shard.
type Conn struct {
	// Owner is for the caller; the engine does not use it.
	Owner any

	cfg     *Config
	h       Handler
	pool    *Pool
	waker   Waker
	block   *Block // scratch, shared by the connections of the shard
	streams streamTable

	// Receiving.
	state        readState
	partial      []byte // an incomplete frame that is not DATA, or an incomplete preface
	frag         []byte // a header block that is not complete yet
	fragStream   uint32 // 0: no block is open
	fragEnd      bool   // END_STREAM of the HEADERS frame that began it
	fragments    int    // frames of it so far
	fragSelf     bool   // in that frame the stream depends on itself
	partialSince time.Duration
	fragSince    time.Duration
	dec          Decoder
	cur          *Stream // stream of the DATA frame that is being read; nil: discard
	dataLeft     uint32  // bytes of that frame's data to come
	padLeft      uint32  // and of its padding
	excess       int     // the last value of Config.Excess
	padPending   bool    // the pad length octet itself is to come
	inData       bool
	dataEnd      bool
	recvWindow   int64
	recvDebt     int64
	behind       []byte // bytes read after the frame that is being handled
	lastPeer     uint32 // highest stream the peer has opened (server role)
	lastReset    uint32 // highest stream of the peer that we have reset
	initWindow   int64  // our SETTINGS_INITIAL_WINDOW_SIZE
	settled      bool   // the peer has acknowledged our SETTINGS

	// Sending.
	out         []byte
	outOff      int    // bytes of out that were sent
	taken       int    // bytes handed out by Take and not reported yet
	accepted    uint64 // bytes ever accepted by the kernel
	greeting    uint64 // position up to which output may leave before the peer's SETTINGS; 0: no bound
	outSize     int    // size of the last buffer, to begin the next one with
	sendWindow  int64
	peerWindow  int64  // the peer's SETTINGS_INITIAL_WINDOW_SIZE
	peerFrame   int    // the peer's SETTINGS_MAX_FRAME_SIZE
	peerStreams uint32 // the peer's SETTINGS_MAX_CONCURRENT_STREAMS
	peerList    uint32 // the peer's SETTINGS_MAX_HEADER_LIST_SIZE
	nextID      uint32 // next stream to open (client role)
	sentBlock   bool   // a header block was written, with it the table size update
	updateAt    uint64 // position of the frame with that update
	control     waitingFrames
	resetsOut   uint64 // RST_STREAM frames ever written
	waiting     streamList
	resuming    bool
	quota       int64 // bytes that the stream in its turn may still write; noQuota

	guard guard

	// Ending.
	goAwayIn   bool   // the peer has sent GOAWAY
	goAwayLast uint32 // and accepts no stream above this
	goAwayOut  bool
	admitUpTo  uint32 // last stream of our final GOAWAY
	closed     bool
}

// NewConn returns the engine of a connection. A client connection has its
// preface and settings in Output at once, its streams once the peer's settings
// have arrived; a server connection writes nothing before the peer's preface.
func NewConn(cfg *Config, h Handler, pool *Pool, block *Block, waker Waker) *Conn {
	c := &Conn{
		cfg: cfg, h: h, pool: pool, block: block, waker: waker,
		recvWindow: defaultWindow, initWindow: int64(cfg.Window),
		sendWindow: defaultWindow, peerWindow: defaultWindow,
		peerFrame: defaultMaxFrame, peerStreams: assumedStreams, peerList: math.MaxInt32,
		nextID: 1, admitUpTo: maxStreamID, goAwayLast: maxStreamID,
		quota: noQuota,
	}
	if cfg.WindowPressed != 0 && pool.Budget().Pressed() {
		c.initWindow = int64(cfg.WindowPressed)
	}
	c.dec.Init(cfg.Watch, 4096, int(cfg.MaxHeaderList))
	if !cfg.Server {
		c.state = wantSettings
		c.reserve(len(Preface))
		c.out = append(c.out, Preface...)
		c.greet()
		c.greeting = c.position()
	}
	return c
}

// Watch sets another list of fields to find in later header blocks. It costs nothing
// before the next block.
func (c *Conn) Watch(list *WatchList) { c.dec.Watch(list) }

// greet writes our SETTINGS and raises the connection's window.
func (c *Conn) greet() {
	var p [6 * 6]byte // settings, of 6 bytes each
	s := p[:0]
	if !c.cfg.Server {
		s = appendSetting(s, settingEnablePush, 0)
	}
	if c.cfg.MaxStreams != 0 {
		s = appendSetting(s, settingMaxConcurrentStreams, c.cfg.MaxStreams)
	}
	s = appendSetting(s, settingInitialWindowSize, uint32(c.initWindow))
	s = appendSetting(s, settingMaxHeaderListSize, c.cfg.MaxHeaderList)
	if c.cfg.MaxFrame > defaultMaxFrame {
		s = appendSetting(s, settingMaxFrameSize, c.cfg.MaxFrame)
	}
	c.reserve(2*frameHeaderLen + len(s) + 4)
	c.out = appendFrameHeader(c.out, len(s), frameSettings, 0, 0)
	c.out = append(c.out, s...)
	if extra := int64(c.cfg.ConnWindow) - defaultWindow; extra > 0 {
		c.out = appendWindowUpdate(c.out, 0, uint32(extra))
		c.recvWindow += extra
	}
}

// Streams returns how many streams are open.
func (c *Conn) Streams() int { return c.streams.n }

// Stream returns the open stream with this number, or nil.
func (c *Conn) Stream(id uint32) *Stream { return c.streams.get(id) }

// CanOpen reports whether another stream may be opened (client role): the
// peer's stream limit leaves room, it has not said GOAWAY, and less than half
// of the stream ids are used (R15).
func (c *Conn) CanOpen() bool {
	return !c.closed && !c.goAwayIn && c.state != failed &&
		uint32(c.streams.n) < c.peerStreams && c.nextID < maxStreamID/2
}

// Retired reports whether no stream will ever be opened again (client role),
// so that the connection can go when its last stream ends.
func (c *Conn) Retired() bool {
	return c.closed || c.goAwayIn || c.state == failed || c.nextID >= maxStreamID/2
}

// PeerHeaderList is the largest header list that the peer takes, by its SETTINGS:
// octets as in Block.ListSize, 2^31-1 without a limit. The engine does not check it.
// Source: RFC 9113 section 6.5.2.
func (c *Conn) PeerHeaderList() int { return int(c.peerList) }

// Greeted reports whether the peer's first SETTINGS have arrived. In the client
// role it stays true after the connection has ended.
func (c *Conn) Greeted() bool { return c.state == reading || !c.cfg.Server && c.greeting == 0 }

// Begun returns the received part of an incomplete preface, without the bytes of the
// Feed that has ended in ErrNotHTTP2. It is valid until the next call of a method.
func (c *Conn) Begun() []byte { return c.partial }

// Heard returns when bytes last arrived, 0 before the first.
func (c *Conn) Heard() time.Duration { return c.guard.now }

// Each calls f for every open stream, in no particular order. f must not open
// or close streams.
func (c *Conn) Each(f func(*Stream)) {
	for _, slot := range c.streams.slots {
		if slot.s != nil {
			f(slot.s)
		}
	}
}

// Close ends the connection: every open stream is told Lost, buffers go back
// to the pool. A second call does nothing.
func (c *Conn) Close() {
	if c.closed {
		return
	}
	c.closed, c.state = true, failed
	// Removing moves later members of a run to the slot that became free, never
	// to an earlier one, so that one pass meets all of them.
	for i := 0; i < len(c.streams.slots); {
		s := c.streams.slots[i].s
		if s == nil {
			i++
			continue
		}
		sent := c.accepted+uint64(c.taken) > s.headStart
		c.drop(s)
		c.h.Lost(s, sent)
	}
	c.pool.Put(c.out)
	c.pool.Put(c.partial)
	c.pool.Put(c.frag)
	c.out, c.partial, c.frag, c.outOff = nil, nil, nil, 0
}

// drop takes the stream out of the connection.
func (c *Conn) drop(s *Stream) {
	c.streams.remove(s.id)
	c.waiting.remove(s)
	if c.cur == s {
		c.cur = nil // the rest of its DATA frame is discarded
	}
	s.conn, s.wants = nil, false
}

// finish drops the stream if both directions have ended.
func (c *Conn) finish(s *Stream) {
	if s.localDone && s.remoteDone && s.conn == c {
		c.drop(s)
	}
}
