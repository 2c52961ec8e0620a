package rig

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/cabrank/cabrank/lab/internal/names"
	"github.com/cabrank/cabrank/lab/internal/result"
)

// front is what callers call, and what knows the workers.
type front interface {
	// start has it answer, with workers behind it at these addresses.
	start(ctx context.Context, backends []string) error
	// target is what callers dial.
	target() string
	// change says which workers there are from now on.
	change(ctx context.Context, backends []string) error
	// usage is what its processes have used, and the workers that it has started.
	usage() []result.Process
	// stop ends it. It is called once, also if start has failed.
	stop()
}

// noFront is none: callers call the first worker.
type noFront struct{ first string }

func newNoFront(r *Rig) front { return &noFront{first: r.places[0].addr()} }

func (f *noFront) start(context.Context, []string) error { return nil }
func (f *noFront) target() string                        { return f.first }
func (f *noFront) usage() []result.Process               { return nil }
func (f *noFront) stop()                                 {}

func (f *noFront) change(context.Context, []string) error {
	return fmt.Errorf("without a front nobody is told of workers that come and go")
}

// serviceName is the name that stands for all workers.
const serviceName = "workers.lab"

// nameFront is a name server, as a cluster has for a Service without an address.
type nameFront struct {
	rig   *Rig
	names *names.Server
}

func newNameFront(r *Rig) front { return &nameFront{rig: r} }

func (f *nameFront) start(ctx context.Context, backends []string) (err error) {
	if f.names, err = names.Serve(); err != nil {
		return err
	}
	return f.change(ctx, backends)
}

func (f *nameFront) change(_ context.Context, backends []string) error {
	ttl := f.rig.spec.Front.TTL
	if ttl == 0 {
		ttl = time.Second
	}
	var addresses []netip.Addr
	for _, at := range f.rig.places {
		if slices.Contains(backends, at.addr()) {
			address, err := netip.ParseAddr(at.host)
			if err != nil {
				return err
			}
			addresses = append(addresses, address)
		}
	}
	return f.names.Say(serviceName+".", ttl, addresses...)
}

func (f *nameFront) target() string {
	return fmt.Sprintf("dns://%s/%s:%d", f.names.Addr, serviceName, f.rig.places[0].port)
}

func (f *nameFront) usage() []result.Process { return nil }

func (f *nameFront) stop() {
	if f.names != nil {
		f.names.Close()
	}
}
