// Package discover finds endpoints that cabrank does not run itself, watches them, and
// tells which of them can take calls.
//
// Start from Roster and Options. By default:
//
//  1. An upstream is an address ("host:port", "unix:/path"), a name whose
//     addresses are endpoints ("dns:NAME:PORT", a headless Service), or a
//     service record ("srv:_grpc._tcp.NAME"). An address of several upstreams is one
//     endpoint.
//  2. Names are looked up again when the TTL of the answer is over, and at once when
//     one of their endpoints fails. A lookup that fails changes nothing; a name
//     without addresses keeps its last ones for MaxTTL.
//  3. Each endpoint has one connection on which it is asked for its health, as often as
//     workers are (package health). The endpoint gets calls while the connection is up,
//     or can be made again at once, and the answer is good. Discover never kills
//     anything.
//  4. An endpoint that no upstream names any more gets no new calls; its running calls
//     have DrainTimeout to end.
//
// It knows no call: the data plane's evidence about an endpoint comes in through
// Activity, and results go out through Registry and Membership.
//
// Goroutines: one for each name (source), one for each endpoint (member), which
// alone calls Registry and Membership about it, and one that keeps its connection.
// Roster.mu guards what they share; no function of the caller is called under it.
package discover
