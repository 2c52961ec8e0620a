package worker

import "net/netip"

// warnIfExposed says once that a worker takes its calls on more than the loopback
// address that it was given. It serves all the same: in a container that may be meant,
// and many a server knows no other way.
func (w *worker) warnIfExposed(l *life) {
	given, err := netip.ParseAddrPort(l.place.address)
	if l.place.network != "tcp" || err != nil {
		return
	}
	for _, on := range listensOn(l.group) {
		own, err := netip.ParseAddrPort(on)
		if err != nil || own.Port() != given.Port() || own.Addr().Unmap().IsLoopback() {
			continue
		}
		w.s.exposedOnce.Do(func() {
			w.log.Warn("worker listens beyond this machine: others can reach it past cabrank's queue and limits; have it listen on its address alone",
				"listens_on", on, "address", l.place.address)
		})
	}
}
