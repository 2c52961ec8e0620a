package service

import "time"

// Bounds that have no key: nobody has had a reason to turn one, and each is told where
// docs/invariants.md has what it bounds.
const (
	replayBytes     = 64 << 10         // of a request that are kept so that the call can be sent to another worker (R3)
	replayTotal     = 16 << 20         // of all requests together
	absorbBytes     = 1 << 20          // of an answer that is read ahead of its caller: most are smaller, and free their worker at once (R9)
	headerList      = 64 << 10         // bytes of a header list: four times what servers take by themselves, so that tokens fit
	callsAtOnce     = 250              // that one connection may have open: libraries open another one then, or wait
	handshakeTime   = 5 * time.Second  // until a connection has begun to speak: a few lost packets around the world
	headerTime      = 10 * time.Second // for headers, or another frame without data, that have begun
	keepAlive       = 5 * time.Minute  // of silence of an endpoint elsewhere: many servers punish who asks more often (R15)
	frameSize       = 16 << 10         // the least that HTTP/2 allows (RFC 9113 4.2): no call waits for a longer frame of another
	waitingWindow   = 64 << 10         // bytes that a call may send before it has a slot: one message, mostly (R11)
	runningWindow   = 1 << 20          // bytes of a running call on their way, each direction: 80 Mbit/s over 100 ms (R11)
	connectionBytes = 16 << 20         // that wait for one connection: what callsAtOnce calls may send before they have slots (R11)
	resetsPerSecond = 1000             // calls that a connection may cancel in the long run: no honest caller comes near (CVE-2023-44487)
	mostHops        = 16               // cabranks that a call may have come through: more is a cycle (R10)

	leastTTL    = time.Second     // for which an answer of a name server is kept, whatever it says
	mostTTL     = 5 * time.Minute // the same; and of an empty one the endpoints of before
	socketBytes = 64 << 20        // by which the process may grow for all that waits for sockets, where socket serve says nothing else

	slowCall = time.Second // from which on a call is always in the access log

	// Retries and hedges of all calls together, so that they do not make an outage worse.
	retryShare     = 0.1 // of the calls of the last 10 s
	retryPerSecond = 10  // however few calls there are
)
