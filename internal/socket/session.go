package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
)

const (
	// mostPromises is how many requests may be without ACK or NACK; then the socket
	// is not read from.
	mostPromises = 256

	// linger is how long the end of a socket may take: what is queued is written,
	// and who was told to go says goodbye.
	linger = 2 * time.Second
)

// What a client is told when its request is refused here.
var (
	errCalls         = errors.New("too many calls of this socket wait")
	errTimeout       = errors.New("invalid timeout: it is negative")
	errSubscriptions = errors.New("too many subscriptions of this socket")
	errName          = errors.New("URI or channel too long")
)

// session is one socket.
//
// Life: run reads until the socket ends, then cleans up.
type session struct {
	server  *Server
	ws      *websocket.Conn
	net     net.Conn
	out     *outbox
	allows  allowed
	dialect dialect
	ctx     context.Context //nolint:containedctx // of the socket: its calls end with it
	cancel  context.CancelFunc

	// Owned by run.
	methods  Methods // who has had calls of it; nil: nobody
	topics   map[broker.Topic]struct{}
	identity *Identity // nil: nobody was asked who it is
	caller   *broker.Caller
	rate     *rate // of what it sends; nil: any

	// Read by the server's rounds, in nanoseconds since 1970.
	heard   atomic.Int64 // when the client was last heard
	reading atomic.Int64 // since when a message comes in; 0: none does
	expires atomic.Int64 // when the identity does; 0: never
	held    atomic.Bool  // it waits for the broker, and does not read
	pinged  atomic.Bool  // since it was last heard

	mu       sync.Mutex
	changed  sync.Cond           // a promise was kept, a subscription is done, or it was told to go
	promises []*promise          // not kept yet, in order
	calls    int                 // that were taken and have not ended
	byID     map[messageID]*call // those of juggler.1
	joining  int                 // subscriptions that are not done
	failed   []broker.Topic      // could not be subscribed, and are still in topics
	leaving  bool                // the socket ends when nothing is left to be done
	saidBye  bool                // a close frame was sent
	over     bool
	reason   endReason // the first one
}

func newSession(server *Server, ws *websocket.Conn, allows allowed, identity *Identity) *session {
	s := &session{server: server, ws: ws, net: ws.NetConn(), allows: allows, dialect: dialectOf(ws.Subprotocol())}
	s.caller = &broker.Caller{ID: newUUID(), Address: hostOf(s.net.RemoteAddr())}
	s.changed.L = &s.mu
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.out = newOutbox(s.net, &server.options, &server.budget, &server.batches, func(n int) { server.stats.dropped.Add(uint64(n)) })
	s.out.tells = s.dialect.isNew()
	s.heard.Store(time.Now().UnixNano())
	if n := server.options.MessagesPerSecond; n > 0 {
		s.rate = &rate{each: time.Second / time.Duration(n), burst: n}
	}
	if identity != nil {
		s.becomes(identity)
	}
	ws.SetReadLimit(server.options.ReadLimit)
	ws.SetPingHandler(s.onPing)
	ws.SetPongHandler(func(string) error { return s.hear() })
	ws.SetCloseHandler(s.onClose)
	return s
}

// hostOf returns an address without its port; "" for what has none, such as a Unix
// socket.
func hostOf(address net.Addr) string {
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return ""
	}
	return host
}

// run serves the socket until it ends.
func (s *session) run() {
	stop := s.awaitToken()
	s.openChannels()
	err := s.read()
	stop()
	s.setReason(s.out.cause())
	s.setReason(reasonOf(err))
	s.explain(err)
	s.cancel()
	if s.methods != nil {
		s.methods.Left(s.caller)
	}
	s.stop()
	for topic := range s.topics {
		s.server.hub.unsubscribe(topic, s)
	}
	s.out.end(nil, false)
	if code, _ := farewell(s.dialect, err); code != 0 || errors.Is(err, websocket.ErrReadLimit) {
		s.listenOn()
	}
	select {
	case <-s.out.drained():
	case <-time.After(linger):
	}
	s.out.abort()
	s.server.remove(s)
}

// stop has nobody wait for this socket any more.
func (s *session) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	for _, p := range s.promises {
		p.dropFrames()
	}
	s.promises = nil
}

func drop(f *frame) {
	if f != nil {
		f.drop()
	}
}

// listenOn takes what the client still sends, so that the kernel does not reset the
// connection before the client has read why it ends.
func (s *session) listenOn() {
	_ = s.net.SetReadDeadline(time.Now().Add(linger / 2)) // without it the next line ends, too
	_, _ = io.CopyN(io.Discard, s.net, 1<<20)
}

var (
	errBinary  = errors.New("a frame of the other kind")
	errUTF8    = errors.New("text that is not UTF-8")
	errAllowed = errors.New("a message that was not announced")
	errBudget  = errors.New("no memory for a message")
	errOver    = errors.New("the socket has ended")
)

// read reads messages until the socket ends, and returns why.
func (s *session) read() error {
	body := s.server.newBody()
	defer body.free()
	for {
		kind, r, err := s.ws.NextReader()
		if err != nil {
			return err
		}
		if kind != int(s.dialect.opcode()) {
			return errBinary
		}
		s.reading.Store(time.Now().UnixNano())
		err = body.readFrom(r)
		s.reading.Store(0)
		if err != nil {
			return err
		}
		if !s.pace() {
			return errOver
		}
		if err := s.take(body.bytes); err != nil {
			return err
		}
		body.shrink()
		_ = s.hear()
	}
}

// take takes one message. An error ends the socket.
func (s *session) take(message []byte) error {
	if s.dialect.opcode() == opText && !utf8.Valid(message) {
		return errUTF8
	}
	r, err := s.dialect.parse(message)
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
		return nil // nothing is answered any more
	}
	if r.refused == nil && s.takeSmall(&r) {
		return s.awaitRoom()
	}
	p := s.promised(r)
	if p == nil {
		return nil
	}
	if err := s.awaitRoom(); err != nil {
		return err
	}
	s.begin(p)
	return nil
}

// takeSmall takes what is not acknowledged.
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

// tell sends what nobody has asked for in turn, if the dialect has a word for it.
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
	if !s.out.awaitRoom() {
		return errOver
	}
	return nil
}

// errMessage marks what is no message.
var errMessage = errors.New("not a message")

// begin starts what a request asks for; p is done later, or at once.
func (s *session) begin(p *promise) {
	if p.refused != nil {
		p.done(p.refused)
		return
	}
	if most := s.server.options.MaxName; len(p.uri) > most || len(p.channel) > most {
		p.done(errName)
		return
	}
	if err := s.identity.refuses(&p.request); err != nil {
		s.server.stats.denied.Add(1)
		p.done(err)
		return
	}
	switch p.kind { //nolint:exhaustive // parse lets no other through
	case Call:
		s.call(p)
	case Pub:
		s.awaitJoined()
		s.server.options.Broker.Publish(broker.Event{Channel: p.channel, ID: s.dialect.eventID(p.id), Args: p.args}, p.done)
	case Sub:
		s.subscribe(p)
	case Unsub:
		topic := p.topic()
		if _, ok := s.topics[topic]; ok {
			delete(s.topics, topic)
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

// join subscribes to a topic.
func (s *session) join(topic broker.Topic, done func(error)) {
	if s.topics == nil {
		s.topics = map[broker.Topic]struct{}{}
	}
	s.topics[topic] = struct{}{}
	s.mu.Lock()
	s.joining++
	s.mu.Unlock()
	s.server.hub.subscribe(topic, s, func(err error) {
		s.mu.Lock()
		s.joining--
		if err != nil {
			s.failed = append(s.failed, topic)
		}
		s.mu.Unlock()
		done(err)
	})
}

// forgetFailed gives up the places of subscriptions that were refused.
func (s *session) forgetFailed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, topic := range s.failed {
		delete(s.topics, topic)
	}
	s.failed = nil
}

// awaitJoined waits until the subscriptions before are done: what is published now
// comes to its own sender.
func (s *session) awaitJoined() {
	s.held.Store(true)
	defer s.held.Store(false)
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.joining > 0 && !s.saidBye {
		s.changed.Wait()
	}
}

// send queues a reply. One that is too long ends the socket after what precedes it.
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

// bye sends a close frame, once, and gives the client some time to answer it.
func (s *session) bye(code int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byeLocked(code, why)
}

func (s *session) byeLocked(code int, why string) {
	if s.saidBye {
		return
	}
	s.saidBye = true
	payload := websocket.FormatCloseMessage(s.dialect.closeCode(s.reason, code), shortened(why))
	s.out.end(newFrame(control(opClose, payload), &s.server.budget), false)
	_ = s.net.SetReadDeadline(time.Now().Add(linger)) // a connection that is gone ends by itself
	s.changed.Broadcast()
}

func (s *session) hasSaidBye() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saidBye
}

// leave ends the socket with 1001 as soon as it has nothing to do.
func (s *session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaving = true
	s.leaveIfIdle()
}

// leaveIfIdle is called wherever work may have ended. The caller holds mu.
func (s *session) leaveIfIdle() {
	if s.leaving && s.calls == 0 && len(s.promises) == 0 {
		s.reason = s.reason.or(endDrain)
		s.byeLocked(websocket.CloseGoingAway, "")
	}
}

// leaveNow ends the socket with 1001 and returns how many calls it had.
func (s *session) leaveNow() (calls int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.saidBye {
		calls = s.calls
	}
	s.reason = s.reason.or(endDrain)
	s.byeLocked(websocket.CloseGoingAway, "")
	return calls
}

// abort ends the socket at once.
func (s *session) abort(reason endReason) {
	s.setReason(reason)
	s.out.abort()
}

func (s *session) setReason(reason endReason) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reason = s.reason.or(reason)
}

func (s *session) endedBy() endReason {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// hear notes that the client lives.
func (s *session) hear() error {
	s.heard.Store(time.Now().UnixNano())
	s.pinged.Store(false)
	return nil
}

func (s *session) onPing(payload string) error {
	s.out.reply(newFrame(control(opPong, []byte(payload)), &s.server.budget))
	if !s.out.awaitRoom() || !s.pace() {
		return errOver
	}
	return s.hear()
}

// onClose answers with the client's own code. Source: RFC 6455, section 5.5.1.
func (s *session) onClose(code int, _ string) error {
	s.bye(code, "")
	return nil
}
