package relay

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strconv"

	"github.com/cabrank/cabrank/internal/callers"
	"github.com/cabrank/cabrank/internal/grpcwire"
)

// wireLocal is a caller in this process that makes calls as scripts have them of others.
type wireLocal struct {
	*Local

	as    *callers.Caller // the caller of the next calls; nil: that of the Local
	calls map[uint32]*LocalCall
	free  []*LocalCall
	fails map[uint32]error // of calls that were not taken
	waits map[uint32]chan error
}

func (w *wire) newLocal(fields []string) *wireLocal {
	of := w.callerOf(fields)
	l := &wireLocal{Local: w.rig().local(of), calls: map[uint32]*LocalCall{}, fails: map[uint32]error{}, waits: map[uint32]chan error{}}
	w.Cleanup(func() {
		for _, c := range l.calls {
			c.Close()
		}
	})
	return l
}

func (w *wire) callerOf(fields []string) (c callers.Caller) {
	w.set(reflect.ValueOf(&c).Elem(), fields)
	return c
}

// local does with a call what a verb says. An answer that is taken ends the call, which the
// next one is made of.
func (w *wire) local(l *wireLocal, write bool, id uint32, verb string, args []string) {
	c := l.calls[id]
	done := func() {
		c.Close()
		delete(l.calls, id)
		l.free = append(l.free, c)
	}
	switch {
	case write && isHeaders(verb):
		if c = new(LocalCall); len(l.free) > 0 {
			c, l.free = l.free[0], l.free[1:]
		}
		list, last, _ := w.headers(verb, args, true)
		if err := l.Open(c, LocalRequest{Head: headOf(list...), End: bool(last), Caller: l.as}); err != nil {
			l.fails[id] = err
			return
		}
		l.calls[id] = c
	case write:
		wait := func(do func() error) { // somebody else, until "woken"
			told := make(chan error, 1)
			l.waits[id] = told
			go func() { told <- do() }()
		}
		w.pick(verb, map[string]func(){
			"awaits": func() { wait(func() error { _, err := c.Header(); return err }) },
			"pushes": func() { wait(func() error { _, err := c.Write(make([]byte, 1<<20)); return err }) },
			"data":   func() { _, _ = c.Write(w.bytes(args[0])) },
			"end":    func() { c.CloseSend() },
			"cancel": func() { c.Cancel() },
			"leaves": done,
		})
	default:
		w.pick(verb, map[string]func(){
			"reply":  func() { wantAnswer(w, c); done() },
			"answer": func() { w.wantStatus(c, nil, args); done() },        // CODE [text]
			"cut":    func() { w.wantStatus(c, ErrCallCut, args); done() }, // the same, behind an answer that is none
			"data":   func() { w.wantReads(c, args[0]) },
			"end":    func() { w.wantError(readNothing(c), io.EOF) },
			"closed": func() { _, err := c.Write(hi()); w.wantError(err, io.EOF) }, // for writing
			"reads":  func() { _, err := io.ReadFull(c, make([]byte, w.number(args[0]))); w.wantError(err, nil) },
			"taken":  func() { w.same("refused by", int64(c.Taken()), w.number(args[0])) },
			"woken": func() {
				if err := <-l.waits[id]; !errors.Is(err, ErrCallCut) && !errors.Is(err, io.EOF) {
					w.Errorf("got %v", err)
				}
			},
			"full": func() { w.wantError(l.fails[id], ErrTooManyCalls) },
			"over": func() { w.wantError(l.fails[id], ErrClosed) },
		})
	}
}

func (w *wire) wantStatus(c *LocalCall, end error, args []string) {
	_, err := io.ReadAll(c)
	w.wantError(err, end)
	code, _ := strconv.Atoi(args[0])
	wantCode(w, c, grpcwire.Code(code), w.unquote(append(args, "")[1]))
}

func readNothing(c *LocalCall) error {
	_, err := c.Read(make([]byte, 1))
	return err
}

func (w *wire) wantReads(c *LocalCall, word string) {
	want := w.bytes(word)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || !bytes.Equal(got, want) {
		w.Errorf("got %q, %v", got, err)
	}
}

func (w *wire) wantError(err, want error) {
	if !errors.Is(err, want) {
		w.Errorf("got %v, want %v", err, want)
	}
}
