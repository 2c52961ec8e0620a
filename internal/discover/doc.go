// Package discover finds endpoints that someone else runs, watches them, and
// tells which of them can take calls.
//
// Start from Roster and Options. How it goes by default:
//
//  1. An upstream is an address ("host:port", "unix:/path"), a name whose
//     addresses are endpoints ("dns:NAME:PORT", a headless Service), or a
//     service record ("srv:_grpc._tcp.NAME"). An address that several of them
//     name is one endpoint.
//  2. Names are looked up again when the answer's time is over, and at once when
//     one of their endpoints fails. A lookup that fails changes nothing; a name
//     without addresses keeps its last ones for MaxTTL.
//  3. To each endpoint one connection is held, on which it is asked for its health
//     by the rhythm of workers (package health). While the connection stands, or
//     can be had anew at once, and the answer is good, the endpoint gets calls.
//     Nothing that happens has anything killed.
//  4. An endpoint that is named no more gets no new calls; those that run there
//     have DrainTimeout to end.
//
// It knows no call: what the data plane sees of an endpoint comes in through
// Activity, what it must know goes out through Registry and Membership.
//
// Goroutines: one for each name (source), one for each endpoint (member), which
// alone calls Registry and Membership about it, and one that holds its connection.
// What they share is guarded by Roster.mu, under which nothing of the caller's is
// called.
package discover
