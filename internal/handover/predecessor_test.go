package handover

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/testkit"
)

// successorAndOld returns a process that has greeted its predecessor, and the
// other end of their link.
func successorAndOld(t *testing.T) (*Predecessor, *link) {
	t.Helper()
	testkit.CheckLeaks(t)
	theirs, ours := pair(t)
	p := newPredecessor(ours)
	greeted := make(chan error, 1)
	go func() { greeted <- p.Greet("v1", time.Minute) }() // ended by the hello
	m, _, err := theirs.receive(time.Now().Add(bound))
	testkit.Need(t, err == nil && m.speaks() == nil && m.Limit == time.Minute.Milliseconds(), "%+v, %v", m, err)
	testkit.Must(t, theirs.send(&message{Kind: kindHello, Oldest: 1, Newest: 1, Program: "v0", PID: 4711, Workers: 2}))
	testkit.Must(t, <-greeted)
	testkit.Need(t, p.PID == 4711 && p.Workers == 2 && p.Program == "v0", "%+v", p)
	return p, theirs
}

// handOne gives a listener to a successor that asks for it.
func handOne(t *testing.T, p *Predecessor, old *link, l *Listeners) {
	t.Helper()
	on := testkit.Listen(t)
	fd, err := copyOf(on)
	testkit.Must(t, err)
	defer closeDescriptors([]int{fd})
	testkit.Must(t, old.send(&message{Kind: kindListeners, Sockets: []socketNote{{Name: Traffic, Asked: "x"}}}, fd))
	testkit.Must(t, p.Take(l))
	taken, origin, err := l.Open(Traffic, "tcp", "x", unbound)
	testkit.Need(t, err == nil && origin == Received, "%v %v", origin, err)
	t.Cleanup(func() { taken.Close() })
}

// R20: who has the listeners goes on, also if the old process has died in the meantime,
// but not if that has given up and goes on itself. Without the listeners the new process
// ends with the old one, and knows which of the two it was.
func TestOldProcessIsLost(t *testing.T) {
	for name, tc := range map[string]struct {
		handed, gaveUp bool
		want           error
	}{
		"dies":                              {want: errPredecessorGone},
		"gives up":                          {gaveUp: true, want: errGivenUp},
		"dies after handing over":           {handed: true},
		"gives up after it has handed over": {handed: true, gaveUp: true, want: errGivenUp},
	} {
		t.Run(name, func(t *testing.T) {
			p, old := successorAndOld(t)
			if tc.handed {
				handOne(t, p, old, &Listeners{})
			}
			if tc.gaveUp {
				testkit.Must(t, old.send(&message{Kind: kindFailed, Error: "SIGTERM"}))
			}
			old.close()
			ends := p.Lost
			if tc.handed {
				<-p.Gone()
				ends = p.Serving
			}
			if err := ends(); !errors.Is(err, tc.want) || tc.gaveUp && !strings.HasSuffix(err.Error(), ": SIGTERM") {
				t.Errorf("got %v, want %v", err, tc.want)
			}
			err := p.Take(&Listeners{})
			testkit.Want(t, tc.handed || errors.Is(err, errPredecessorGone), "Take: %v", err)
		})
	}
}

// What is no listener, and what was not asked for, ends the takeover and leaves
// no descriptor behind.
func TestTakeRefusesOtherThings(t *testing.T) {
	p, old := successorAndOld(t)
	descriptors := openDescriptors(t)
	null, err := os.Open(os.DevNull)
	testkit.Must(t, err)
	testkit.Must(t, old.send(&message{Kind: kindListeners, Sockets: []socketNote{{Name: Traffic}}}, int(null.Fd())))
	null.Close()
	testkit.Refused(t, p.Take(&Listeners{}), "is no socket")
	testkit.Must(t, old.send(&message{Kind: kindOver}))
	testkit.Refused(t, p.Take(&Listeners{}), `"over" in place of its listeners`)
	now := openDescriptors(t)
	testkit.Want(t, now <= descriptors, "%d descriptors open, %d before", now, descriptors)
	p.Fail(errors.New("enough"))
	<-p.Gone()
}

// An old cabrank that is too new, or too old, is told apart at the first word.
func TestOldProcessSpeaksAnotherVersion(t *testing.T) {
	theirs, ours := pair(t)
	p := newPredecessor(ours)
	testkit.Must(t, theirs.send(&message{Kind: kindHello, Oldest: 3, Newest: 4, Program: "v7"}))
	err := p.Greet("v1", time.Minute)
	testkit.Want(t, err != nil && strings.Contains(err.Error(), "speaks versions 3 to 4"), "got %v", err)
	p.Fail(errors.New("no common language"))
	<-p.Gone()
}
