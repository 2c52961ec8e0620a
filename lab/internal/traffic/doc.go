// Package traffic makes calls by a plan, with any Client, and records what became
// of each.
//
// Options are what people type; Options.Plan reads them into a Plan. New joins a plan
// and a client to a Load; Load.Run makes the calls and returns a Record, and Load.Live
// tells how it goes meanwhile. Records merge without loss and are written as JSON.
//
//  1. In an open loop calls start at moments that were drawn before, whoever has
//     answered. Latency and deadline count from that intended start.
//  2. In a closed loop a number of callers make one call after the other. Its records
//     say so: they are not to be set beside those of an open loop.
//  3. Every call that was due is in the record once: answered, failed, unsent or open.
//  4. Nothing grows without bound: at most Plan.Most calls are under way, and what
//     is kept does not grow with their number.
//
// It knows no protocol and no socket: package caller has a client that uses grpc-go.
package traffic
