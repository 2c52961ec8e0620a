package socket

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"

	"github.com/cabrank/cabrank/internal/broker"
	"github.com/cabrank/cabrank/internal/watch"
)

// longestRound is how long an expired socket may stay.
const longestRound = 4 * time.Second

// Server makes sockets of requests. It is an http.Handler.
//
// Life: New, requests, Drain or Close, after which every request is refused.
// Concurrency: every method may be called from anywhere.
type Server struct {
	options     Options
	upgrader    websocket.Upgrader
	hub         *hub
	directory   *directory // nil: commands are not taken
	budget      budget
	events      account    // for frames of many sockets
	compare     budget     // for the work of patterns, see mostWork
	matching    *rateOfAll // for that work as it is done
	stats       counters
	bodies      sync.Pool  // of *[]byte with room for bodySize
	batches     sync.Pool  // of *batch
	rate        *rateOfAll // of handshakes
	sources     sources
	longTurns   chan struct{}    // has an element for each turn that is taken, see broker.Share
	workPermits chan *workPermit // has the free permits, see turns
	watcher     watch.Watcher
	readers     *readerPool
	echo        func(s *session, kind int, message []byte) error // of a test of the transport: in place of take
	shedding    sync.Mutex

	ended   sync.WaitGroup // of the rounds
	live    sync.WaitGroup // of sessions
	closing chan struct{}  // ends the rounds
	close   sync.Once

	origins       atomic.Pointer[[]string]
	originTold    atomic.Int64 // when the log was told of a refused origin, in nanoseconds since 1970
	originsUntold atomic.Int64 // origins refused since then

	mu          sync.Mutex
	open        map[*session]struct{}
	beginning   int // handshakes under way
	mostSockets int
	draining    bool
}

// New returns a server that accepts sockets.
func New(options Options) *Server {
	s := &Server{
		options: options.withDefaults(), open: map[*session]struct{}{}, closing: make(chan struct{}), readers: newReaderPool(),
		sources: sources{all: map[string]*source{}}, longTurns: make(chan struct{}, 1),
		workPermits: newWorkPermits(),
	}
	s.events.budget = &s.budget
	s.SetOrigins(s.options.Origins)
	s.SetMost(s.options.MaxSockets)
	s.SetBuffer(s.options.BufferTotal)
	s.rate = newRateOfAll(float64(s.options.HandshakesPerSecond))
	s.compare.total.Store(cost(mostWork))
	s.matching = newRateOfAll(matchedPerSecond)
	s.bodies.New = func() any {
		space := make([]byte, 0, bodySize)
		return &space
	}
	s.batches.New = func() any { return new(batch) }
	s.upgrader = websocket.Upgrader{
		Subprotocols: protocols(), WriteBufferPool: &sync.Pool{},
	}
	s.hub = newHub(s.options.Broker, s.deliver)
	s.hub.cut, s.hub.gap = cutOld, s.tellGap
	s.ended.Go(s.rounds)
	return s
}

// ServeHTTP makes a socket of a request. The socket goes on after it returns.
//
// Errors: 503 for too many sockets or handshakes, or while it drains; 401 for an invalid or
// missing token; 403 for an origin that may not have sockets; the answer of
// gorilla/websocket to a request that is not a handshake. Without the subprotocol the
// connection is dropped after the handshake, as clients of juggler.0 expect.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !websocket.IsWebSocketUpgrade(r) {
		_, _ = s.upgrade(w, r) // answers it; it does not count as a handshake
		return
	}
	from := s.sources.of(addressKey(hostOf(r.RemoteAddr)), time.Now())
	defer func() { s.sources.leave(from) }()
	if why, refused := s.refuses(from, time.Now()); refused {
		s.refuse(w, why)
		return
	}
	made := false
	defer func() {
		if !made {
			s.hasBegun()
		}
	}()
	id, err := s.identify(r)
	if err != nil {
		s.refuseToken(w, err)
		return
	}
	if id != nil && id.User != "" {
		s.sources.leave(from)
		from = s.sources.of(userKey(id.User), time.Now())
	}
	if !s.admits(from) {
		s.refuse(w, refusedSockets)
		return
	}
	made = s.make(w, r, from, id)
}

// refuse answers a handshake that cannot become a socket now.
func (s *Server) refuse(w http.ResponseWriter, why refusal) {
	s.stats.refused[why].Add(1)
	w.Header().Set("Retry-After", "1")
	http.Error(w, "no socket now: "+why.String(), http.StatusServiceUnavailable)
}

// make makes a socket of an admitted handshake. If it reports true the handshake does not
// count any more.
func (s *Server) make(w http.ResponseWriter, r *http.Request, from *source, id *identity) (made bool) {
	defer func() {
		if !made {
			s.sources.gone(from)
		}
	}()
	h := &hijacker{ResponseWriter: w}
	ws, err := s.upgrade(h, r)
	if err != nil {
		s.stats.refused[refusedHandshake].Add(1)
		return false // the upgrader has answered
	}
	if ws.Subprotocol() == "" && !s.options.AllowEmptySubprotocol {
		s.stats.refused[refusedProtocol].Add(1)
		ws.Close()
		return false
	}
	session := newSession(s, ws, h, r, from, id)
	if !s.add(session) {
		session.cancel()
		s.stats.refused[refusedDrain].Add(1)
		text := websocket.FormatCloseMessage(websocket.CloseGoingAway, "")
		_ = ws.WriteControl(websocket.CloseMessage, text, time.Now().Add(linger)) // it ends either way
		ws.Close()
		return false
	}
	session.welcome()
	session.start()
	return true
}

// refuses returns why a socket cannot be made now. Otherwise the handshake counts until
// hasBegun.
func (s *Server) refuses(from *source, now time.Time) (why refusal, refused bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.draining:
		return refusedDrain, true
	case len(s.open)+s.beginning >= s.mostSockets:
		return refusedSockets, true
	case !s.rate.allows(now, from.debtOf(&from.handshakes), 1):
		return refusedRate, true
	}
	s.beginning++
	return 0, false
}

// admits counts a new socket of a source, and reports false if the source may have no more.
func (s *Server) admits(from *source) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sources.admits(from, len(s.open)+s.beginning, s.mostSockets)
}

func (s *Server) hasBegun() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beginning--
}

func (s *Server) add(session *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining {
		return false
	}
	s.live.Add(1)
	s.beginning--
	s.open[session] = struct{}{}
	s.stats.opened.Add(1)
	s.directory.add(session, session.caller.ID, session.caller.User)
	return true
}

func (s *Server) remove(session *session) {
	s.mu.Lock()
	delete(s.open, session)
	s.mu.Unlock()
	s.sources.gone(session.source)
	s.directory.remove(session, session.caller.ID, session.caller.User)
	s.stats.ended[session.endedBy()].Add(1)
	s.live.Done()
}

func (s *Server) sessions() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*session, 0, len(s.open))
	for session := range s.open {
		all = append(all, session)
	}
	return all
}

// deliver makes one frame of an event for each dialect and queues it for each subscriber.
func (s *Server) deliver(members map[*session]struct{}, topic broker.Topic, e broker.Event) {
	a := answer{kind: Evnt, channel: e.Channel, args: e.Args}
	if err := a.id.UnmarshalText([]byte(e.ID)); err != nil {
		return // not published by this protocol
	}
	if topic.Pattern {
		a.pattern = topic.Name
	}
	s.spread(members, &a)
}

// tellGap tells members of a topic that they may have missed events. The message keeps its
// order among the events.
func (s *Server) tellGap(members map[*session]struct{}, topic broker.Topic) {
	a := about(Gap, topic)
	s.spread(members, &a)
}

// cutOld ends the sockets of juggler.0, which cannot be told of a gap, after their queued
// frames; the old server did so.
func cutOld(members map[*session]struct{}) {
	for session := range members {
		if !session.dialect.isNew() {
			session.setReason(endBroker)
			session.out.end(nil, true)
		}
	}
}

// spread queues a message among the events of members.
func (s *Server) spread(members map[*session]struct{}, a *answer) {
	var frames [dialects]*frame
	for session := range members {
		f := frames[session.dialect]
		if f == nil {
			if f = frameOf(session.dialect, a, &s.events); f == nil {
				continue // the dialect cannot express it
			}
			frames[session.dialect] = f
		}
		if !session.out.event(f.retain()) {
			session.overflow()
		}
	}
	for _, f := range frames {
		drop(f)
	}
	s.stats.out[a.kind].Add(uint64(len(members)))
	if s.budget.isOver() {
		s.shed()
	}
}

// take takes bytes of the budget. If need be it drops queued events, or ends sockets with
// incoming messages.
func (s *Server) take(a *account, bytes int) bool {
	if a.Take(bytes) {
		return true
	}
	s.shedFor(a)
	for range mostEvicted {
		if a.Take(bytes) {
			return true
		}
		if !s.evict(a) {
			return false
		}
	}
	return a.Take(bytes)
}

// mostEvicted is how many sockets may be ended to make room for one.
const mostEvicted = 4

// evict ends, among the sockets with an incomplete message, the one that uses most memory,
// if it uses more than a; only sockets of the same source if that source has too much. It
// reports whether it has ended one.
func (s *Server) evict(a *account) bool {
	own := a.source != nil && a.source.Load() > sourcePart*a.budget.left()
	s.shedding.Lock()
	defer s.shedding.Unlock()
	var victim *session
	most := a.used.Load()
	for _, session := range s.sessions() {
		if session.reading.Load() > 0 && session.incoming.Load() > 0 && session.account.used.Load() > most && (!own || session.account.source == a.source) {
			victim, most = session, session.account.used.Load()
		}
	}
	if victim == nil {
		return false
	}
	victim.dropIncoming()
	victim.abort(endBudget)
	return true
}

// dropIncoming gives back the bytes of an incoming message.
func (s *session) dropIncoming() { s.account.Give(int(s.incoming.Swap(0))) }

// hasForNames reports whether bytes of subscriptions fit. If need be it drops queued events.
func (s *Server) hasForNames(a *account, bytes int) bool {
	if a.hasForNames(bytes) {
		return true
	}
	s.shedFor(a)
	return a.hasForNames(bytes)
}

// shedFor makes room for an account, unless its own source uses more than half of the used
// memory: then the events of others are not in its way.
func (s *Server) shedFor(a *account) {
	if a.source == nil || a.source.Load() <= s.budget.used.Load()/2 {
		s.shed()
	}
}

// shed makes room in the budget: the sockets with most queued events lose them, until a
// quarter is free.
func (s *Server) shed() {
	if s.hasRoom() {
		return
	}
	s.shedding.Lock()
	defer s.shedding.Unlock()
	type debtor struct {
		session *session
		bytes   int
	}
	var debtors []debtor
	for _, session := range s.sessions() {
		if bytes := session.out.backlog(); bytes > 0 {
			debtors = append(debtors, debtor{session, bytes})
		}
	}
	slices.SortFunc(debtors, func(a, b debtor) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, d := range debtors {
		if s.hasRoom() {
			return
		}
		if d.session.out.shed() > 0 && d.session.dialect.isNew() {
			d.session.overflow()
		}
	}
}

// hasRoom reports whether a quarter of the budget is free.
func (s *Server) hasRoom() bool { return cost(s.budget.used.Load()) <= s.budget.total.Load()/4*3 }

// rounds checks all sockets regularly.
func (s *Server) rounds() {
	ticker := time.NewTicker(max(min(s.options.Ping, s.options.ReadTimeout, longestRound*8)/8, 10*time.Millisecond))
	defer ticker.Stop()
	for {
		select {
		case <-s.closing:
			return
		case now := <-ticker.C:
			s.sources.forget(now)
			for _, session := range s.sessions() {
				session.check(now)
			}
		}
	}
}

// check pings a silent client, and ends one that stays silent, is too slow, or has expired.
func (s *session) check(now time.Time) {
	o := &s.server.options
	if expires := s.expires.Load(); expires != 0 && now.UnixNano() > expires {
		s.expire()
		return
	}
	if began := s.reading.Load(); began != 0 && now.UnixNano()-began > int64(o.ReadTimeout) {
		s.abort(endSlow)
		return
	}
	silence := time.Duration(now.UnixNano() - s.heard.Load())
	switch {
	case s.notReading.Load() || silence <= o.Ping || s.hasSaidBye():
	case silence > o.Ping+o.Ping/2 && s.pinged.Load():
		s.abort(endIdle)
	case s.pinged.CompareAndSwap(false, true):
		s.out.reply(newFrame(control(opPing, nil), &s.account))
	}
}

// Drain refuses new sockets. Sockets without calls leave, spread over the first half of
// the time of ctx, sockets with calls when these have ended, and all others at the end of
// ctx. It returns when all have left, and how many calls were cut.
func (s *Server) Drain(ctx context.Context) (cut int) {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	left := s.sessions()
	rand.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	began, half := time.Now(), time.Duration(0)
	if deadline, ok := ctx.Deadline(); ok {
		half = time.Until(deadline) / 2
	}
	for i, session := range left {
		due := began.Add(half * time.Duration(i) / time.Duration(len(left)))
		if !pause(ctx, time.Until(due)) {
			break
		}
		session.leave()
	}
	gone := make(chan struct{})
	go func() { // ends with the sessions; Close ends the last ones
		s.live.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
		for _, session := range s.sessions() {
			cut += session.leaveNow()
		}
	}
	s.Close()
	<-gone
	return cut
}

// pause waits. It reports false if ctx ended first.
func pause(ctx context.Context, lasts time.Duration) bool {
	if lasts <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(lasts)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Close refuses new sockets, tells open ones to leave, and returns when they have, at the
// latest after a few seconds.
func (s *Server) Close() {
	s.mu.Lock()
	s.draining = true
	s.mu.Unlock()
	for _, session := range s.sessions() {
		session.leaveNow()
	}
	s.close.Do(func() { close(s.closing) })
	s.ended.Wait()
	s.live.Wait()
	s.watcher.Close()
	s.readers.close()
}
