package relay

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/cabrank/cabrank/internal/h2"
)

// site serves every path that begins with "/site" by one function.
func site(serve func(*Exchange)) func(*Options) {
	return func(o *Options) {
		o.Other = func(head Head) func(*Exchange) {
			if bytes.HasPrefix(head.Path, []byte("/site")) {
				return serve
			}
			return nil
		}
	}
}

// answer writes a whole answer.
func (x *Exchange) answer(body string) {
	if x.WriteHead(h2.AppendField(nil, ":status", "200"), false) == nil {
		_, _ = x.Write([]byte(body), true)
	}
}

// echoExchange answers with what it reads, as it comes.
func echoExchange(x *Exchange) {
	_ = x.WriteHead(h2.AppendField(nil, ":status", "200"), false)
	p := make([]byte, 32<<10)
	for {
		n, err := x.Read(p)
		if n > 0 {
			_, err = x.Write(p[:n], false)
		}
		if err != nil {
			break
		}
	}
	_, _ = x.Write(nil, true)
}

// sites are handlers by what they do. Some wait for "release".
func (w *wire) sites() map[string]func(*Exchange) {
	head := func(x *Exchange, kv ...string) { _ = x.WriteHead(block(kv...), kv[0] != ":status") }
	return map[string]func(*Exchange){
		"echo":    echoExchange,
		"here":    func(x *Exchange) { _, _ = io.Copy(io.Discard, x); x.answer("here") },
		"answers": func(x *Exchange) { x.answer("0123456789") },
		"returns": func(*Exchange) {},
		"resets":  func(x *Exchange) { x.Reset(h2.EnhanceYourCalm) },
		"begins":  func(x *Exchange) { head(x, ":status", "200") },
		"waits":   func(x *Exchange) { w.released(); x.answer("done") },
		"stays":   func(*Exchange) { w.released() },
		"halves": func(x *Exchange) { // reads half a window at each release
			for range 2 {
				w.released()
				if _, err := io.ReadFull(x, make([]byte, streamWindow/2)); err != nil {
					w.Errorf("read: %v", err)
				}
			}
			x.answer("read")
		},
		"all": w.doesAll,
		"tells": func(x *Exchange) { // body, fields of the head and of the trailers
			x.WriteInterim(block(":status", "100"))
			body, _ := io.ReadAll(x)
			fields := x.Head()
			trailers := x.Trailers()
			head(x, ":status", "200")
			x.WriteInterim(block(":status", "103")) // too late
			_, _ = x.Write(fmt.Append(nil, string(body), fieldsBehind(fields), fieldsBehind(trailers)), false)
			head(x, "x-sum", "3")
		},
	}
}

// doesAll reads, writes and works at once, until it is told of each that its caller has gone.
func (w *wire) doesAll(x *Exchange) {
	told := make(chan error, 3)
	go func() { _, err := x.Read(make([]byte, 1)); told <- err }()
	_ = x.WriteHead(block(":status", "200"), false)
	go func() { _, err := x.Write(make([]byte, 1<<20), false); told <- err }()
	<-x.Context().Done()
	told <- x.WriteHead(block("late", "1"), true)
	for range 3 {
		if err := <-told; !errors.Is(err, ErrGone) {
			w.Errorf("got %v, want ErrGone", err)
		}
	}
	w.released()
}

// other serves each path "/site/NAME" by what is of this name, and "/site" by the default.
func (w *wire) other(name string) func(Head) func(*Exchange) {
	sites := w.sites()
	return func(head Head) func(*Exchange) {
		if at, ok := bytes.CutPrefix(head.Path, []byte("/site/")); ok {
			return sites[string(at)]
		}
		o := Options{}
		site(sites[name])(&o)
		return o.Other(head)
	}
}
