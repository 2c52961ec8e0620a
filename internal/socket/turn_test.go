package socket

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// Sockets that have cost much work one at a time where there is one permit, light ones beside
// them, and who waits for something is in nobody's way.
func TestHeavySocketsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &Server{workPermits: make(chan *workPermit, 1)}
		server.workPermits <- &workPermit{}
		reader := func(cost time.Duration) (*turns, net.Conn) {
			here, there := net.Pipe()
			t.Cleanup(func() { here.Close(); there.Close() })
			o := Options{}.withDefaults()
			s := &session{server: server, out: newOutbox(here, &o, nil, nil, nil, func() {})}
			return &turns{Conn: here, session: s, cost: cost, at: time.Now()}, there
		}
		read := func(r *turns, peer net.Conn) (done chan struct{}) {
			done = make(chan struct{})
			go func() {
				defer close(done)
				_, err := r.Read(make([]byte, 1))
				testkit.Want(t, err == nil, "%v", err)
			}()
			_, err := peer.Write([]byte{1})
			testkit.Want(t, err == nil, "%v", err)
			synctest.Wait()
			return done
		}
		first, peer1 := reader(time.Second)
		second, peer2 := reader(time.Second)
		light, peer3 := reader(0)
		<-read(first, peer1)
		<-read(light, peer3)
		waits := read(second, peer2)
		select {
		case <-waits:
			t.Fatal("two heavy sockets work at a time")
		default:
		}
		first.leave()
		<-waits
		second.rest()
		testkit.Want(t, len(server.workPermits) == 1 && light.permit == nil, "a lane is not given back, or a light socket has one")
		light.began = time.Now().Add(-2 * lightBurst)
		light.stop()
		<-read(light, peer3)
		testkit.Want(t, light.permit != nil, "a socket that has cost much counts as light")
		light.leave()
		time.Sleep(time.Second) //nolint:forbidigo // in a bubble
		<-read(light, peer3)
		if light.leave(); light.cost > lightBurst {
			t.Errorf("it costs %v a second later", light.cost)
		}
	})
}

// Who has waited in nobody's way works in turn again.
func TestHeavySocketsTakeTurnsAfterAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &Server{workPermits: make(chan *workPermit, 1)}
		server.workPermits <- &workPermit{}
		dropped, o := 0, Options{}.withDefaults()
		server.options = o
		out, peer := stuckOutbox(t, 1, newAccount(1<<20), &dropped)
		s := &session{server: server, out: out}
		s.changed.L, s.account.budget = &s.mu, out.account.budget
		s.turns = &turns{session: s, cost: time.Second, at: time.Now()}
		waits := map[string]func(){
			"a pause": func() { s.pause(time.Millisecond) },
			"subscriptions": func() {
				s.joining = 1
				time.AfterFunc(time.Millisecond, func() {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.joining = 0
					s.changed.Broadcast()
				})
				s.awaitJoined()
			},
			"answers": func() {
				s.promises = make([]*promise, mostPromises)
				time.AfterFunc(time.Millisecond, func() {
					s.mu.Lock()
					defer s.mu.Unlock()
					s.promises = nil
					s.changed.Broadcast()
				})
				s.promised(request{})
			},
			"its client": func() {
				out.reply(newFrame(make([]byte, 2*pausedBytes), out.account))
				time.AfterFunc(time.Millisecond, func() {
					for n := 0; n < 2*pausedBytes; {
						got, err := peer.Read(make([]byte, pausedBytes))
						if n += got; err != nil {
							t.Error(err)
							return
						}
					}
				})
				testkit.Must(t, s.awaitRoom())
			},
		}
		for what, wait := range waits {
			s.turns.work()
			if wait(); s.turns.permit == nil {
				t.Errorf("behind %s a heavy socket works beside others", what)
			}
			s.turns.leave()
		}
	})
}
