// Package admin shows what goes on, and passes on what is asked for: the probes
// for an orchestrator, the metrics page for Prometheus, the control socket for
// the commands of cabrank (docs/control.md).
//
// Start from ServeProbes, ServeMetrics and ServeControl; each answers at once, on
// a listener that is given to it; ListenControl opens that of the control. The package decides nothing:
// what it shows comes from a Health, an Observer and the functions of Sources,
// which it asks anew for every request, and what it is told to do it tells a
// Fleet or a Process.
//
// Limits, per Server: 256 connections (control: 64, and 32 commands at work),
// 5 s for a request's header, 16 KiB of it (control: 256 KiB of body), 10 s for a
// page or one event; further connections wait in the kernel.
package admin
