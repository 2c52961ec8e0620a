//go:build real || soak

package lab_test

import (
	"bufio"
	"encoding/json"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/lab/internal/rig"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/lab/internal/testbed"
	"github.com/cabrank/cabrank/test/real/harness"
)

// needPods skips a test where no network namespace with rules of the kernel may be made.
func needPods(t *testing.T) {
	t.Helper()
	pods, err := testbed.StartPods([]string{harness.LabBinary(t), rig.PodsCommand})
	if err != nil {
		t.Skip(err)
	}
	pods.Close()
}

// spreadWithin calls the arm from where it can be reached and counts who answers.
func spreadWithin(t *testing.T, r *rig.Rig) map[string]int {
	t.Helper()
	command := r.Caller([]string{harness.OwnBinary(t), connectRole, r.Target(), "60"})
	call := exec.Command(command[0], command[1:]...)
	call.Stderr = os.Stderr
	out, err := call.Output()
	testkit.Must(t, err)
	who := map[string]int{}
	testkit.Must(t, json.Unmarshal(out, &who))
	return who
}

// The kernel sends new connections to pods by chance: to all of them, to new ones, and
// no more to those that have gone. The address is one of a cluster.
func TestDNAT(t *testing.T) {
	needPods(t)
	spec := greeters(t, 3, scenario.FrontDNAT)
	spec.Workers[2].Later = true
	r := start(t, spec)
	notes := r.Notes()
	testkit.Want(t, len(notes) == 0 && r.Target() == "10.96.0.1:8080", "target %s, notes %q", r.Target(), notes)
	want := func(names ...string) {
		t.Helper()
		who := spreadWithin(t, r)
		testkit.Want(t, slices.Equal(slices.Sorted(maps.Keys(who)), names), "answers from %v, want %v", who, names)
		for name, n := range who { // of 60: less than 1 in 10,000 has fewer of one of three
			testkit.Want(t, n >= 6, "%s got %d connections of 60", name, n)
		}
	}
	want("worker-1", "worker-2")
	do(t, r, scenario.Event{Do: scenario.DoAdd})
	want("worker-1", "worker-2", "worker-3")
	do(t, r, scenario.Event{Do: scenario.DoRemove, Worker: 1})
	want("worker-2", "worker-3")
	do(t, r, scenario.Event{Do: scenario.DoRoll})
	want("worker-2", "worker-3")
}

// A plan has room for a thousand pods, and for none.
func TestManyPods(t *testing.T) {
	needPods(t)
	pods, err := testbed.StartPods([]string{harness.LabBinary(t), rig.PodsCommand})
	testkit.Must(t, err)
	defer pods.Close()
	for _, n := range []int{1000, 0, 1, 1000} {
		plan := testbed.PodPlan{Port: 8080}
		for i := range n {
			plan.Pods = append(plan.Pods, testbed.Pod(i))
		}
		err = pods.Set(plan)
		testkit.Want(t, err == nil, "%d pods: %v", n, err)
	}
	testkit.Want(t, pods.Set(testbed.PodPlan{Port: 8080, Pods: []netip.Addr{netip.IPv6Loopback()}}) != nil, "a pod of IPv6")
}

// Where no namespace may be made, HAProxy is in its place and that is said.
func TestDNATElsewhere(t *testing.T) {
	need(t, scenario.FrontHAProxyTCP)
	spec := greeters(t, 2, scenario.FrontDNAT)
	// A lab that cannot hold the network, as one that may not.
	script := "#!/bin/sh\ncase \"$1\" in pods) read line; echo '{\"id\":0,\"error\":\"not allowed\"}';; *) exec " + spec.Programs.Lab + " \"$@\";; esac\n"
	refuses := harness.WriteFile(t, "cabrank-lab", script)
	spec.Programs.Lab = refuses
	r := start(t, spec)
	notes := r.Notes()
	if len(notes) != 1 || notes[0] != "no random DNAT as kube-proxy has it: not allowed. HAProxy balances connections in its place" {
		t.Errorf("notes %q", notes)
	}
	awaitSpread(t, r, scenario.FrontHAProxyTCP, "worker-1", "worker-2")
}

// The process that holds a network refuses to do so in one that others use.
func TestPodsTouchNoOtherNetwork(t *testing.T) {
	holder := exec.Command(harness.LabBinary(t), rig.PodsCommand)
	holder.Stdin = strings.NewReader(`{"id":0,"method":"Pods.Set","params":[{}]}` + "\n")
	out, err := holder.StdoutPipe()
	testkit.Must(t, err)
	testkit.Must(t, holder.Start())
	line, _ := bufio.NewReader(out).ReadString('\n')
	err = holder.Wait()
	testkit.Want(t, err == nil && strings.Contains(line, "this is not a network of its own: "), "%q, %v", line, err)
}

// A gateway is where callers are, and so reaches the Service.
func TestGatewayOfPods(t *testing.T) {
	needPods(t)
	spec := greeters(t, 1, scenario.FrontDNAT)
	spec.Gateway.Command = []string{"python3", "-c", `
import http.server, socket, sys
host, port = sys.argv[1].rsplit(":", 1)
socket.create_connection((host, int(port))).close()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), http.server.SimpleHTTPRequestHandler).serve_forever()
`, "{target}", "{port}"}
	r := start(t, spec)
	command := r.Caller([]string{"python3", "-c", "import socket, sys; h, p = sys.argv[1].rsplit(':', 1); socket.create_connection((h, int(p)))", r.Target()})
	out, err := exec.Command(command[0], command[1:]...).CombinedOutput()
	testkit.Want(t, err == nil, "%v: %s", err, out)
	testkit.Eventually(t, harness.Patience, "the gateway is told of", func() bool { return slices.Contains(rolesOf(r.Usage()), "gateway") })
}
