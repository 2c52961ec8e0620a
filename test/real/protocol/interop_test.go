//go:build real || soak

package protocol_test

import (
	"net"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// interopLog makes the interop programs say where they listen and what they
// have finished: an exit code of 0 alone does not prove that a case ran.
var interopLog = []string{"GRPC_GO_LOG_SEVERITY_LEVEL=info"}

// interopCases are the test cases of grpc-go's interop client that need no
// credentials of a cloud, each with the line that it logs at its end.
var interopCases = []struct{ name, done string }{
	{"empty_unary", "EmptyUnaryCall done"},
	{"large_unary", "LargeUnaryCall done"},
	{"client_streaming", "ClientStreaming done"},
	{"server_streaming", "ServerStreaming done"},
	{"ping_pong", "Pingpong done"},
	{"empty_stream", "Emptystream done"},
	{"timeout_on_sleeping_server", "TimeoutOnSleepingServer done"},
	{"cancel_after_begin", "CancelAfterBegin done"},
	{"cancel_after_first_response", "CancelAfterFirstResponse done"},
	{"status_code_and_message", "StatusCodeAndMessage done"},
	{"special_status_message", "SpecialStatusMessage done"},
	{"custom_metadata", "CustomMetadata done"},
	{"unimplemented_method", "UnimplementedMethod done"},
	{"unimplemented_service", "UnimplementedService done"},
	{"rpc_soak", "RpcSoak done"},
	{"channel_soak", "ChannelSoak done"},
}

// The suite itself passes here: a failure below is then cabrank's.
func TestInteropDirect(t *testing.T) {
	runInterop(t, startInteropServer(t))
}

// Every kind of call arrives unchanged at an endpoint that someone else runs.
func TestInteropUpstream(t *testing.T) {
	c := harness.StartCabrank(t, "--upstream", startInteropServer(t), "--probes", "off", "--metrics", "off")
	runInterop(t, c.Addr)
}

// The same over workers that cabrank starts. They have no health service: one
// that accepts connections is ready.
func TestInteropWorkers(t *testing.T) {
	c := harness.StartCabrankEnv(t, interopLog, "--workers", "2",
		"--", harness.Tool(t, "interop_server"), "-use_tls=false", "-port", "{port}")
	c.WaitReady(harness.Patience)
	runInterop(t, c.Addr)
}

// startInteropServer starts the server on a free port and returns its address.
func startInteropServer(t *testing.T) string {
	t.Helper()
	server := harness.StartProcess(t, interopLog, harness.Tool(t, "interop_server"), "-use_tls=false", "-port", "0")
	line := server.WaitLog(harness.Patience, "interop server listening on ")
	_, port, err := net.SplitHostPort(line[strings.LastIndex(line, " ")+1:])
	testkit.Need(t, err == nil, "no address in the line %q: %v", line, err)
	return net.JoinHostPort("127.0.0.1", port)
}

// runInterop runs every case against an address, one client process each.
func runInterop(t *testing.T, addr string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	testkit.Must(t, err)
	for _, tc := range interopCases {
		t.Run(tc.name, func(t *testing.T) {
			client := harness.StartProcess(t, interopLog, harness.Tool(t, "interop_client"), "-use_tls=false",
				"-server_host", host, "-server_port", port, "-test_case", tc.name)
			client.WantExit(harness.Patience, 0)
			testkit.Want(t, strings.Contains(client.Log(), tc.done), "the client did not say %q", tc.done)
		})
	}
}
