//go:build real || soak

// Package lab_test does with the lab what its users do: arms of a scenario are started
// with real workers, called, disturbed and ended.
package lab_test

import (
	"context"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cabrank/cabrank/internal/demo/demopb"
	"github.com/cabrank/cabrank/lab/internal/rig"
	"github.com/cabrank/cabrank/lab/internal/scenario"
	"github.com/cabrank/cabrank/test/real/harness"
)

func TestMain(m *testing.M) {
	harness.Main(m, harness.Role{Name: holdRole, Run: hold}, harness.Role{Name: connectRole, Run: connect})
}

// programs are those that the tests measure with.
func programs(t testing.TB) rig.Programs {
	t.Helper()
	return rig.Programs{Cabrank: harness.CabrankBinary(t), Lab: harness.LabBinary(t)}
}

// holdRole as the first argument makes the test binary start an arm, print what runs,
// and wait for its end.
const holdRole = "hold-rig"

func hold(args []string) error {
	cabrank := args[0]
	worker := rig.Worker{Command: []string{cabrank, "demo", "worker"}}
	stubborn := rig.Worker{Command: []string{"sh", "-c", "trap '' TERM; " + cabrank + " demo worker & wait; sleep 600"}}
	r, err := rig.Start(context.Background(), rig.Spec{Programs: rig.Programs{Cabrank: cabrank, Lab: args[1]}, Workers: []rig.Worker{worker, stubborn}, Front: scenario.Front{Kind: scenario.FrontCabrank}})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(r.Usage()); err != nil {
		return err
	}
	select {}
}

// connectRole as the first argument makes the test binary call an address over so many
// new connections, and print who has answered.
const connectRole = "connect"

func connect(args []string) error {
	n, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	who := map[string]int{}
	for range n {
		conn, err := grpc.NewClient("passthrough:///"+args[0], grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy())
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
		answer, err := demopb.NewGreeterClient(conn).SayHello(ctx, &demopb.HelloRequest{Name: "a"})
		cancel()
		conn.Close()
		if err != nil {
			return err
		}
		who[answer.GetWorker()]++
	}
	return json.NewEncoder(os.Stdout).Encode(who)
}
