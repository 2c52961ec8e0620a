// Package admin shows what goes on: the probes for an orchestrator and the
// metrics page for Prometheus.
//
// Start from ServeProbes and ServeMetrics; both answer on a listener, which Listen
// opens, at once. The package decides nothing: what it shows comes from a Health and
// from the functions of Sources, which it asks anew for every request.
//
// Limits, per Server: 256 connections, 5 s for a request's header, 16 KiB of
// it, 10 s for a page; further connections wait in the kernel.
package admin
