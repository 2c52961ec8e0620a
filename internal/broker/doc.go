// Package broker connects callers with callees, and publishers with subscribers.
//
// Start from Call, Event and Memory. The interface of a broker is declared in
// internal/socket; every broker passes the suite of internal/broker/brokertest:
//
//  1. A call is accepted or refused at once, then answered, or expired when its time
//     is over, exactly once. A call of a URI without a callee waits until then.
//  2. A caller may leave: its call is taken back, or the result is dropped.
//  3. All subscribers get the events of one channel in the order in which they were
//     published.
//  4. Several results of a call come in order, never more than its caller has given
//     credit for.
//  5. Subscribe is done when events come, Unsubscribe when none does any more.
//
// Memory is a broker inside one process: callees are functions of the process, and
// nothing outlives it. It knows no socket and no message.
package broker
