package relay

import (
	"maps"
	"slices"
)

// recipe writes scripts: the seeds of FuzzCaller and FuzzPeers that are easier
// to read as code than as files. What a run finds is in testdata/fuzz.
type recipe struct{ b []byte }

// The fuzzed peers of the two targets, by the operation that lets them act.
const (
	opCaller = 3
	opMad    = 0
)

// Frames, as peer.write numbers them.
const (
	frameNew = iota
	frameAnswer
	_
	frameAgain
	frameData
	_
	framePadded
	frameBig
	frameRST
	frameWindow
	frameSettings
	framePing
	frameGoAway
	frameFragments
	frameTable
	frameRaw
)

// Numbers, as script.number spreads them.
const (
	numberZero = 0
	numberOne  = 1
	numberMost = 13 // 2^31-1
	numberOver = 14 // 2^31
)

func (r *recipe) add(b ...byte) *recipe {
	r.b = append(r.b, b...)
	return r
}

// frame has a fuzzed peer write a frame on its last stream.
func (r *recipe) frame(op, kind byte, choice int, more ...byte) *recipe {
	return r.add(op, 1, kind, byte(choice), 1).add(more...)
}

// raw has a fuzzed peer send these bytes.
func (r *recipe) raw(op byte, p []byte) *recipe {
	for part := range slices.Chunk(p, 255) {
		r.add(op, 0, byte(len(part))).add(part...)
	}
	return r
}

// ask has the fuzzed caller begin a call with this list.
func (r *recipe) ask(list int, last bool) *recipe {
	return r.frame(opCaller, frameNew, choiceOf(list, last))
}

// reply has the fuzzed worker send this list.
func (r *recipe) reply(list int, last bool) *recipe {
	return r.frame(opMad, frameAnswer, choiceOf(list, last))
}

func choiceOf(list int, last bool) int {
	if last {
		return list<<1 | 1
	}
	return list << 1
}

// serve has the steady caller make a call and the good worker answer one.
func (r *recipe) serve() *recipe { return r.add(7, 9, 10, 13, 6, 11, 9, 10, 8, 6, 255) }

// times repeats what f writes.
func (r *recipe) times(n int, f func(*recipe)) *recipe {
	for range n {
		f(r)
	}
	return r
}

// callerSeeds are ordinary calls and each way in which a caller is known to
// have hurt a server.
func callerSeeds() (seeds [][]byte) {
	add := func(flags byte, f func(r *recipe)) {
		r := (&recipe{}).add(flags)
		f(r.serve())
		seeds = append(seeds, r.serve().b)
	}
	for flags := range byte(8) { // ordinary calls, to workers with windows of every kind
		add(flags, func(r *recipe) {
			r.ask(0, true).serve().ask(1, false).frame(opCaller, frameData, 9<<1).serve()
			r.frame(opCaller, frameData, 9<<1|1).serve().ask(0, false).frame(opCaller, frameAgain, choiceOf(28, true))
		})
	}
	for list := range requests() {
		for _, flags := range []byte{0, 64, 128} { // as cancelled has them
			add(flags, func(r *recipe) {
				r.ask(list, true).frame(opCaller, frameRST, 8<<1).serve().ask(list, false).serve().frame(opCaller, frameRST, 8<<1)
			})
		}
	}
	for size := 6; size <= 8; size++ { // of 7 bytes
		add(0, func(r *recipe) { r.ask(12, false).serve().frame(opCaller, framePadded, size<<4|1, 0) })
	}
	floods := map[string]func(*recipe){
		"rapid reset (CVE-2023-44487)":            func(r *recipe) { r.ask(0, true).frame(opCaller, frameRST, 8<<1) },
		"reset at the worker":                     func(r *recipe) { r.ask(0, false).serve().frame(opCaller, frameRST, 8<<1) },
		"MadeYouReset (CVE-2025-8671), no window": func(r *recipe) { r.ask(0, true).frame(opCaller, frameWindow, 0, numberZero) },
		"MadeYouReset, window overflow":           func(r *recipe) { r.ask(0, true).frame(opCaller, frameWindow, 0, numberMost) },
		"MadeYouReset, half-closed":               func(r *recipe) { r.ask(0, true).frame(opCaller, frameData, 2) },
		"MadeYouReset, HEADERS again":             func(r *recipe) { r.ask(0, true).frame(opCaller, frameAgain, 0) },
		"MadeYouReset, PRIORITY of 1 byte":        func(r *recipe) { r.ask(0, true).frame(opCaller, frameRaw, 2, 2, 1, 0) },
		"SETTINGS":                                func(r *recipe) { r.frame(opCaller, frameSettings, 4, 9) },
		"PING":                                    func(r *recipe) { r.frame(opCaller, framePing, 0) },
		"PRIORITY":                                func(r *recipe) { r.frame(opCaller, frameRaw, 2, 2, 5, 0, 0, 0, 1, 9) },
		"empty DATA":                              func(r *recipe) { r.frame(opCaller, frameData, 0) },
		"padding alone":                           func(r *recipe) { r.frame(opCaller, framePadded, 0, 255) },
		"WINDOW_UPDATE by one":                    func(r *recipe) { r.frame(opCaller, frameWindow, 0, numberOne) },
		"CONTINUATION (CVE-2024-27316)":           func(r *recipe) { r.frame(opCaller, frameFragments, choiceOf(7, true), 0) },
		"header bomb":                             func(r *recipe) { r.ask(6, true).ask(6, true) },
		"table sizes": func(r *recipe) {
			r.frame(opCaller, frameTable, 0, 4).ask(6, true).frame(opCaller, frameTable, 0, 0).ask(2, true)
		},
		"whole windows":   func(r *recipe) { r.ask(0, false).times(5, func(r *recipe) { r.frame(opCaller, frameBig, 0, 6) }) },
		"frames too long": func(r *recipe) { r.ask(0, false).frame(opCaller, frameBig, 0, 7) },
	}
	for _, name := range slices.Sorted(maps.Keys(floods)) {
		flood := floods[name]
		add(0, func(r *recipe) { r.ask(0, false).times(25, flood) })
		add(16, func(r *recipe) { r.times(4, func(r *recipe) { r.ask(0, false) }).serve().times(25, flood).serve() })
	}
	for n := range byte(16) { // windows and sizes that a caller may announce
		add(0, func(r *recipe) {
			r.frame(opCaller, frameSettings, 4, n).ask(0, true).serve().frame(opCaller, frameSettings, 4, numberOne).serve()
			r.frame(opCaller, frameWindow, 2, n)
		})
		add(0, func(r *recipe) { r.frame(opCaller, frameSettings, 5, n).ask(9, true).serve() })
	}
	add(0, func(r *recipe) { // a long upload: windows grow
		r.ask(0, false).times(60, func(r *recipe) { r.frame(opCaller, frameBig, 0, 6).add(9, 255, 10, 255, 6, 255) })
	})
	// The first call of an upstream connection is taken back before it is sent.
	seeds = append(seeds, (&recipe{}).add(0).ask(0, true).frame(opCaller, frameRST, 8<<1).ask(6, true).serve().serve().b)
	for cut := range byte(30) { // bytes of another protocol, and half a preface
		add(8, func(r *recipe) {
			r.raw(opCaller, []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00")[:cut]).raw(opCaller, []byte("GET / HTTP/1.1\r\n"))
		})
	}
	return seeds
}

// peerSeeds are workers that do what none should, while both callers ask.
func peerSeeds() (seeds [][]byte) {
	add := func(flags byte, f func(r *recipe)) {
		r := (&recipe{}).add(flags, 7, 7, 7)
		f(r.ask(0, true).ask(1, false).add(7, 5, 255, 9, 10))
		seeds = append(seeds, r.serve().serve().b)
	}
	for _, flags := range []byte{0, 1, 2, 3, mayRunTwice, mayRunTwice + 1, 64, 128, 64 + mayRunTwice} {
		for list := range answersOf() {
			add(flags, func(r *recipe) { r.reply(list, true) })
			add(flags, func(r *recipe) { r.reply(list, false).frame(opMad, frameData, 8).reply(list, true) })
			add(flags, func(r *recipe) { r.reply(0, false).reply(list, true).frame(opMad, frameRST, 0) })
		}
	}
	for n := range byte(16) {
		add(0, func(r *recipe) { r.frame(opMad, frameRST, int(n)<<1).reply(0, true) })
		add(0, func(r *recipe) { r.reply(0, false).frame(opMad, frameRST, int(n)<<1) })
		add(0, func(r *recipe) { r.frame(opMad, frameWindow, 0, n) })
		add(0, func(r *recipe) { r.frame(opMad, frameWindow, 2, n) })
		add(0, func(r *recipe) { r.frame(opMad, frameSettings, 3, n).add(7, 7) })
		add(0, func(r *recipe) { r.frame(opMad, frameSettings, 4, n).frame(opMad, frameSettings, 4, numberOver) })
		add(0, func(r *recipe) { r.reply(0, false).frame(opMad, frameBig, 0, n) })
		add(0, func(r *recipe) {
			r.frame(opMad, frameGoAway, 1, n).frame(opMad, frameGoAway, 1, numberMost).reply(0, true)
		})
		add(0, func(r *recipe) { r.frame(opMad, frameGoAway, 2).frame(opMad, frameGoAway, 1, n) })
		add(0, func(r *recipe) { r.frame(opMad, frameFragments, choiceOf(int(n), n%2 == 0), n) })
		add(0, func(r *recipe) {
			r.reply(0, false).frame(opMad, frameRaw, 3, n, 8).raw(opMad, []byte{0, 0, 5, n, 0, 0, 0, 0, 1})
		})
	}
	const opPass = 13
	for list := range answersOf() { // a race of two attempts
		for n := range byte(2) {
			add(mayRunTwice, func(r *recipe) { r.add(opPass, 4+n).reply(list, true).serve() })
			add(mayRunTwice, func(r *recipe) { r.add(opPass, 4+n).reply(0, false).reply(list, true).serve() })
			add(mayRunTwice, func(r *recipe) { r.add(opPass, 4+n).frame(opMad, frameGoAway, 1, n).reply(list, n%2 == 0).serve() })
			add(mayRunTwice, func(r *recipe) { r.add(opPass, 4+n).serve().frame(opMad, frameRST, int(n)<<1).reply(list, true) })
		}
	}
	for _, flags := range []byte{0, 1, 3, mayRunTwice, 64, 128} { // its calls are taken from it
		for part := range 5 { // of a message of 0 bytes
			begin := func(r *recipe) *recipe { return r.reply(0, false).frame(opMad, frameData, part<<1) }
			add(flags, func(r *recipe) { r.add(5, cutMad).serve() })
			add(flags, func(r *recipe) { begin(r).add(5, cutMad).serve() })
			add(flags, func(r *recipe) { begin(r).add(5, cutMad).frame(opMad, frameData, 1<<1).serve() })
			add(flags, func(r *recipe) { begin(r).add(5, cutMad).reply(2, true).serve() })
			add(flags, func(r *recipe) { begin(r).add(5, cutMad).frame(opMad, frameRST, 0).serve() })
			add(flags, func(r *recipe) { begin(r).add(5, cutMad).times(5, func(r *recipe) { r.add(opPass, 250) }) })
		}
	}
	add(0, func(r *recipe) { r.raw(opMad, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")) })
	add(2, func(r *recipe) { r.raw(opMad, []byte{0, 0, 0, 4}) })
	return seeds
}
