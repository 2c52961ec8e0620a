package rig

import (
	"context"
	"fmt"
	"io"
	"net/netip"

	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
)

// serviceFront is the address of a Service, behind which the kernel chooses.
type serviceFront struct{ base }

func (f *serviceFront) start(ctx context.Context, backends []string) error {
	return f.change(ctx, backends)
}

// change is about new connections: those that there are stay where they are.
func (f *serviceFront) change(_ context.Context, backends []string) error {
	plan := testbed.PodPlan{Port: uint16(f.rig.listen.port)}
	for _, addr := range backends {
		pod, err := netip.ParseAddrPort(addr)
		if err != nil {
			return err
		}
		plan.Pods = append(plan.Pods, pod.Addr())
	}
	return f.rig.pods.Set(plan)
}

// openPods makes the network in which all of the arm runs. Where that is not allowed a
// proxy that balances connections takes the place of the kernel, which is said.
func (r *Rig) openPods() {
	pods, err := testbed.StartPods([]string{r.spec.Programs.Lab, PodsCommand})
	if err == nil {
		r.pods = pods
		return
	}
	r.notes = append(r.notes, fmt.Sprintf("no random DNAT as kube-proxy has it: %v. HAProxy balances connections in its place", err))
	r.spec.Front.Kind = scenario.FrontHAProxyTCP
}

// PodsCommand is the word behind `cabrank-lab` that has it call ServePods.
const PodsCommand = "pods"

// ServePods is the body of the process that holds the network of an arm with DNAT.
func ServePods(in io.ReadCloser, out io.WriteCloser) error { return testbed.ServePods(in, out, ask) }
