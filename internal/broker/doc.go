// Package broker joins callers with callees, and publishers with subscribers.
//
// Start from Call, Event and Memory. What sockets need of a broker is declared in
// internal/socket; every broker passes the suite of internal/broker/brokertest:
//
//  1. A call is accepted or refused at once, then answered, or expired when its time
//     is over, exactly once. One that nobody serves waits until then.
//  2. Whoever calls may leave: its call is taken back, or what comes of it is dropped.
//  3. Events of one channel come to all who listen in the order in which they were
//     published.
//  4. Results of a call that has several come in order, never more than its caller has
//     given credit for.
//  5. Subscribe is done when events come, Unsubscribe when none does any more.
//
// Memory has all in one process: callees are functions of it, and nothing outlives it.
// It knows no socket and no message.
package broker
