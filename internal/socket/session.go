package socket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/watch"
)

// mostPromises is how many requests may wait for ACK or NACK; with more the socket is not
// read from.
const mostPromises = 256

// Refusals of requests by this package.
var (
	errCalls         = errors.New("too many calls of this socket wait")
	errTimeout       = errors.New("invalid timeout: it is negative")
	errSubscriptions = errors.New("too many subscriptions of this socket")
	errName          = errors.New("URI or channel too long")
	errPattern       = errors.New("pattern too long, or with too many stars")
	errPatterns      = errors.New("patterns that take too long to compare: this socket, or where it comes from, has its part")
	errMemory        = errors.New("no memory for it: this socket, or where it comes from, has its part")
)

// session is one socket.
//
// Life: start; do whenever something has come in, until finish.
type session struct {
	server  *Server
	ws      *websocket.Conn
	in      *bufio.Reader // of ws
	turns   *turns        // the reader below in
	net     net.Conn
	post    *watch.Post // nil: a goroutine reads all of the time
	account account
	compare account // for the work of its patterns
	source  *source
	out     *outbox
	allows  allowed
	dialect dialect
	ctx     context.Context //nolint:containedctx // of the socket: its calls end with it
	cancel  context.CancelFunc

	incoming      atomic.Int64 // counted bytes of an incoming message
	asleep        atomic.Bool  // no goroutine reads, until Wake
	mustShowToken atomic.Bool  // it has to show its token first

	// Owned by the reading goroutine.
	opening    bool        // the channels of its token are not subscribed to yet
	tokenTimer *time.Timer // until it has to have shown its token; nil: it need not
	methods    Methods     // set after its first call of a method
	topics     map[broker.Topic]struct{}
	identity   *identity // nil: tokens are not needed
	caller     *broker.Caller
	rate       *rate // of its messages; nil: any

	// Read by the server's rounds, in nanoseconds since 1970.
	heard      atomic.Int64 // when the client was last heard
	reading    atomic.Int64 // when the incoming message began; 0: no message is incoming
	expires    atomic.Int64 // when the identity expires; 0: never
	notReading atomic.Bool  // it waits for the broker, and does not read
	pinged     atomic.Bool  // since it was last heard

	mu       sync.Mutex
	changed  sync.Cond                  // a promise was kept, a subscription is done, or it was told to go
	promises []*promise                 // not kept yet, in order
	calls    int                        // accepted calls that have not ended
	byID     map[messageID]*pendingCall // those of juggler.1
	joining  int                        // subscriptions that are not done
	failed   []broker.Topic             // topics whose subscription has failed or ended, still in topics
	leaving  bool                       // the socket ends when it is idle
	saidBye  bool                       // a close frame was sent
	over     bool
	reason   endReason // the first one
}

func newSession(server *Server, ws *websocket.Conn, h *hijacker, r *http.Request, from *source, id *identity) *session {
	s := &session{source: from, server: server, ws: ws, in: h.in, turns: h.from, net: ws.NetConn(), allows: allowedBy(r), dialect: dialectOf(ws.Subprotocol())}
	s.caller = &broker.Caller{ID: broker.NewID(), Address: hostOf(r.RemoteAddr), Source: from.key}
	if shown, ok := s.net.(interface{ Certificate() string }); ok { // relay.Guest
		s.caller.Certificate = shown.Certificate()
	}
	s.changed.L = &s.mu
	s.account.budget, s.account.turns = &server.budget, [2]chan struct{}{from.turn, server.longTurns}
	s.compare.budget = &server.compare
	if from.key != "" {
		s.account.source, s.compare.source = &from.bytes, &from.compare
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.out = newOutbox(s.net, &server.options, &s.account, &server.batches, func(n int) { server.stats.dropped.Add(uint64(n)) }, s.Wake)
	s.out.tells = s.dialect.isNew()
	s.turns.session = s
	s.in.Reset(s.turns) // the library has set the connection itself, and read nothing
	s.heard.Store(time.Now().UnixNano())
	if n := server.options.MessagesPerSecond; n > 0 {
		s.rate = &rate{each: time.Second / time.Duration(n), burst: n}
	}
	if id != nil {
		s.becomes(id)
	}
	ws.SetReadLimit(server.options.ReadLimit)
	ws.SetPingHandler(s.onPing)
	ws.SetPongHandler(s.onPong)
	ws.SetCloseHandler(s.onClose)
	return s
}

// hostOf returns an address without its port; "" for an address without a port, such as a
// Unix socket.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	return host
}

// take takes one message. An error ends the socket.
func (s *session) take(message []byte) error {
	if s.dialect.opcode() == opText && !utf8.Valid(message) {
		return errUTF8
	}
	r, err := s.dialect.parse(message, s.turns.pause)
	if err != nil {
		return fmt.Errorf("%w: %w", errMessage, err)
	}
	if !s.allows.has(r.kind) {
		if !s.dialect.isNew() {
			return errAllowed
		}
		r.refuse(errAnnounced)
	}
	s.server.stats.in[r.kind].Add(1)
	if uri := s.server.options.CloseURI; uri != "" && r.kind == Call && r.uri == uri {
		s.bye(websocket.CloseNormalClosure, "bye")
		return nil
	}
	if s.hasSaidBye() {
		return nil // requests are not answered any more
	}
	if r.refused == nil && s.takeSmall(&r) {
		return s.awaitRoom()
	}
	p := s.promised(r)
	if p == nil {
		return nil
	}
	if err := s.awaitRoom(); err != nil {
		p.done(err) // the socket has ended
		return err
	}
	s.begin(p)
	return nil
}

// takeSmall takes requests that are not acknowledged.
func (s *session) takeSmall(r *request) (taken bool) {
	switch r.kind {
	case Cancel:
		s.cancelCall(r.id)
	case Credit:
		s.grant(r.id, r.credit)
	case Ping:
		s.tell(answer{kind: Pong, id: r.id})
	default:
		return false
	}
	return true
}

// tell sends an answer out of order, if the dialect can express it.
func (s *session) tell(a answer) {
	f := s.frameOf(a)
	if f == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send(a.kind, f)
}

func (s *session) awaitRoom() error {
	if !s.out.hasRoomNow() {
		s.turns.rest()
		defer s.turns.work()
	}
	if !s.out.awaitRoom() {
		return errOver
	}
	return nil
}

// errMessage marks errors of parsing.
var errMessage = errors.New("not a message")

// begin carries out a request; p is done later, or at once.
func (s *session) begin(p *promise) {
	if p.refused != nil {
		p.done(p.refused)
		return
	}
	if most := s.server.options.MaxName; len(p.uri) > most || len(p.channel) > most {
		p.done(errName)
		return
	}
	if p.kind == Sub && p.pattern && isLongPattern(p.channel) {
		p.done(errPattern)
		return
	}
	err := s.identity.refuses(&p.request)
	if err == nil && isReserved(p.channel) {
		err = errDenied
	}
	if err != nil {
		s.server.stats.denied.Add(1)
		p.done(err)
		return
	}
	switch p.kind { //nolint:exhaustive // parse lets no other through
	case Call:
		s.startCall(p)
	case Pub:
		s.awaitJoined()
		s.awaitMatching(len(p.channel))
		s.server.options.Broker.Publish(broker.Event{Channel: p.channel, ID: s.dialect.eventID(p.id), Args: p.args}, p.done)
	case Sub:
		s.subscribe(p)
	case Unsub:
		topic := p.topic()
		if _, ok := s.topics[topic]; ok {
			s.part(topic)
			s.server.hub.unsubscribe(topic, s)
		}
		p.done(nil)
	case Token:
		err := s.authenticate(p.token)
		p.settled(s.identified(answer{kind: Ack}), err)
	}
}

func (s *session) subscribe(p *promise) {
	s.forgetFailed()
	topic := p.topic()
	if _, ok := s.topics[topic]; !ok && len(s.topics) >= s.server.options.MaxSubscriptions {
		p.done(errSubscriptions)
		return
	}
	s.join(topic, p.done)
}

// join subscribes to a topic, if it fits into memory.
func (s *session) join(topic broker.Topic, done func(error)) {
	if _, ok := s.topics[topic]; !ok {
		if !s.server.hasForNames(&s.account, memberBytes+topicBytes+2*len(topic.Name)) {
			done(errMemory)
			return
		}
		if work := workOf(topic); work > 0 && !s.compare.has(work) {
			done(errPatterns)
			return
		}
		if s.topics == nil {
			s.topics = map[broker.Topic]struct{}{}
		}
		s.topics[topic] = struct{}{}
		s.account.holdNames(memberBytes + len(topic.Name))
	}
	s.mu.Lock()
	s.joining++
	s.mu.Unlock()
	s.server.hub.subscribe(topic, s, func(err error) {
		s.mu.Lock()
		s.joining--
		if err != nil {
			s.failed = append(s.failed, topic)
		}
		s.changed.Broadcast() // for awaitJoined
		s.mu.Unlock()
		done(err)
	})
}

// part takes a topic out of topics.
func (s *session) part(topic broker.Topic) {
	delete(s.topics, topic)
	s.account.holdNames(-memberBytes - len(topic.Name))
}

// forgetFailed takes failed subscriptions out of topics, unless the client has subscribed
// again meanwhile.
func (s *session) forgetFailed() {
	s.mu.Lock()
	failed := s.failed
	s.failed = nil
	s.mu.Unlock()
	for _, topic := range failed {
		if _, ok := s.topics[topic]; ok && !s.server.hub.has(topic, s) {
			s.part(topic)
		}
	}
}

// awaitJoined waits until the subscriptions before are done, so that an event published now
// also comes to its sender.
func (s *session) awaitJoined() {
	s.notReading.Store(true)
	defer s.notReading.Store(false)
	s.mu.Lock()
	for s.joining > 0 && !s.saidBye {
		s.turns.leave()
		s.changed.Wait()
	}
	s.mu.Unlock()
	s.turns.work()
}

// send queues a reply. A reply that is too long ends the socket after the replies before.
// The caller holds mu.
func (s *session) send(k Kind, f *frame) {
	if !s.dialect.isNew() && s.server.isTooLong(f) {
		f.drop()
		s.reason = s.reason.or(endWriteLimit)
		s.out.end(nil, true)
		return
	}
	s.server.stats.out[k].Add(1)
	s.out.reply(f)
}
