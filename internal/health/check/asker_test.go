package check

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpchealth "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/health"
	"github.com/cabrank/cabrank/internal/testkit"
)

// No test leaves a goroutine or a listener behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// What an answer says, with and without a health service.
func TestRead(t *testing.T) {
	const ok, bad, unknown = grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING, grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN
	for _, test := range []struct {
		answer grpc_health_v1.HealthCheckResponse_ServingStatus
		code   codes.Code
		want   health.Said
	}{
		{ok, codes.OK, health.Serving},
		{bad, codes.OK, health.NotServing},
		{unknown, codes.OK, health.Serving},
		{0, codes.Unimplemented, health.NoService},
		{0, codes.NotFound, health.NoService},
		{0, codes.Unauthenticated, health.NoService},
		{0, codes.PermissionDenied, health.NoService},
		{0, codes.ResourceExhausted, health.Refused},
		{0, codes.Unavailable, health.Nothing},
		{0, codes.DeadlineExceeded, health.Nothing},
		{0, codes.Internal, health.Fault},
		{0, codes.Unknown, health.Fault},
	} {
		var err error
		if test.code != codes.OK {
			err = status.Error(test.code, "text")
		}
		if got, reason := read(test.answer, err); got != test.want || (reason == "") != (got >= health.Library) {
			t.Errorf("%v %v: %d %q, want %d", test.answer, test.code, got, reason, test.want)
		}
	}
	if got, _ := read(0, status.Error(codes.Unimplemented, notFound)); got != health.Library {
		t.Errorf("grpcio: %d", got)
	}
	if got, reason := read(0, errors.New("no status")); got != health.Fault || reason == "" {
		t.Errorf("%d %q", got, reason)
	}
}

// R6: who is asked when.
func TestPause(t *testing.T) {
	const interval = 5 * time.Second
	asked := time.Now()
	a := new(Asker)
	a.Configure(interval, time.Second)
	well := health.Answer{Said: health.Serving}
	for _, test := range []struct {
		name string
		last health.Answer
		work health.Work
		want time.Duration
	}{
		{"idle", well, health.Work{}, interval},
		{"a call has finished", well, health.Work{Answered: asked.Add(2 * time.Second)}, interval + 2*time.Second},
		{"a call had finished before", well, health.Work{Answered: asked.Add(-time.Second)}, interval},
		{"no health service", health.Answer{Said: health.NoService}, health.Work{}, interval},
		{"busy", health.Answer{Working: true}, health.Work{InFlight: 5}, interval},
		{"busy, and refuses", health.Answer{Said: health.Refused, Working: true}, health.Work{InFlight: 5}, interval},
		{"out", health.Answer{Said: health.NotServing}, health.Work{}, sickPoll},
		{"a fault", health.Answer{Said: health.Fault}, health.Work{}, sickPoll},
		{"missed", health.Answer{}, health.Work{}, sickPoll},
		{"first overdue", health.Answer{Working: true}, health.Work{InFlight: 1, Overdue: true}, 0},
		{"still overdue", health.Answer{Working: true, Overdue: true}, health.Work{InFlight: 1, Overdue: true}, sickPoll},
		{"urgent", well, health.Work{InFlight: 1}, sickPoll},
	} {
		test.last.Asked = asked
		testkit.Equal(t, a.pause(test.last, test.name == "urgent", test.work), test.want, "%s: asked after", test.name)
	}
}

// ask puts one question to whoever listens at the address.
func ask(t *testing.T, listener net.Listener, timeout time.Duration, work health.Work) health.Answer {
	t.Helper()
	a, err := Open(Options{
		Network: "tcp", Address: listener.Addr().String(), Interval: time.Hour, Timeout: timeout,
		Work: func() health.Work { return work },
	})
	testkit.Must(t, err)
	defer a.Close()
	testkit.Want(t, a.Due(health.Answer{}, false), "the first question is not due")
	began := time.Now()
	v := a.Ask(t.Context())
	testkit.Want(t, !v.Asked.Before(began) && !v.Asked.After(time.Now()), "asked at %v", v.Asked)
	return v
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener := testkit.Listen(t)
	return listener
}

// What a server says is heard, with and without a health service.
func TestAskHears(t *testing.T) {
	checks := grpchealth.NewServer()
	for _, test := range []struct {
		name  string
		serve func(*grpc.Server)
		want  health.Said
	}{
		{"SERVING", func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, checks) }, health.Serving},
		{"NOT_SERVING", func(s *grpc.Server) {
			grpc_health_v1.RegisterHealthServer(s, checks)
			checks.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		}, health.NotServing},
		{"no service", func(*grpc.Server) {}, health.NoService},
	} {
		listener, server := listen(t), grpc.NewServer()
		test.serve(server)
		done := make(chan error, 1)
		go func() { done <- server.Serve(listener) }()
		v := ask(t, listener, 10*time.Second, health.Work{})
		testkit.Want(t, v.Said == test.want, "%s: %+v", test.name, v)
		server.Stop()
		<-done
	}
}

// A server of HTTP/2 that answers anything to anything has no health service.
func TestAskHearsHTTP(t *testing.T) {
	listener := listen(t)
	server := &http.Server{
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }),
		Protocols: new(http.Protocols),
	}
	server.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	v := ask(t, listener, 10*time.Second, health.Work{})
	testkit.Want(t, v.Said == health.NoService, "%+v", v)
	server.Close()
	<-done
}

// R6: who accepts and is silent has not answered; while calls run there it is
// busy.
func TestAskHearsSilence(t *testing.T) {
	silent := listen(t)
	if v := ask(t, silent, 50*time.Millisecond, health.Work{}); v.Said != health.Nothing || v.IsBusy() || v.Reason == "" {
		t.Errorf("idle: %+v", v)
	}
	if v := ask(t, silent, 50*time.Millisecond, health.Work{InFlight: 1}); v.Said != health.Nothing || !v.IsBusy() {
		t.Errorf("with a call: %+v", v)
	}
	// A doubt is settled within a second however long the timeout is.
	if v := ask(t, silent, time.Hour, health.Work{InFlight: 1, Overdue: true}); !v.IsBusy() || !v.Overdue {
		t.Errorf("overdue: %+v", v)
	}
}

// Nobody is there: no answer.
func TestAskHearsNobody(t *testing.T) {
	gone := listen(t)
	gone.Close()
	v := ask(t, gone, 10*time.Second, health.Work{})
	testkit.Want(t, v.Said == health.Nothing, "%+v", v)
}
