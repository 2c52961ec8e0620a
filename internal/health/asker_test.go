package health

import (
	"errors"
	"net"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/testkit"
)

// No test leaves a goroutine or a listener behind.
func TestMain(m *testing.M) { testkit.VerifyMain(m) }

// R6: saturation is not sickness, and a worker without health service is not
// sick either.
func TestJudge(t *testing.T) {
	const ok, bad, unknown = grpc_health_v1.HealthCheckResponse_SERVING, grpc_health_v1.HealthCheckResponse_NOT_SERVING, grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN
	for _, test := range []struct {
		answer        grpc_health_v1.HealthCheckResponse_ServingStatus
		code          codes.Code
		idle, working Finding
	}{
		{ok, codes.OK, Serving, Serving},
		{bad, codes.OK, NotServing, NotServing},
		{unknown, codes.OK, Serving, Serving},
		{0, codes.Unimplemented, Serving, Serving},
		{0, codes.NotFound, Serving, Serving},
		{0, codes.Unauthenticated, Serving, Serving},
		{0, codes.PermissionDenied, Serving, Serving},
		{0, codes.ResourceExhausted, Failed, Busy},
		{0, codes.Unavailable, Failed, Busy},
		{0, codes.DeadlineExceeded, Failed, Busy},
		{0, codes.Internal, Failed, Failed},
		{0, codes.Unknown, Failed, Failed},
	} {
		var err error
		if test.code != codes.OK {
			err = status.Error(test.code, "text")
		}
		if got := judge(test.answer, err, false); got.Finding != test.idle {
			t.Errorf("%v %v, idle: finding %d, want %d", test.answer, test.code, got.Finding, test.idle)
		}
		if got := judge(test.answer, err, true); got.Finding != test.working {
			t.Errorf("%v %v, working: finding %d, want %d", test.answer, test.code, got.Finding, test.working)
		}
	}
	if got := judge(0, errors.New("no status"), true); got.Finding != Failed || got.Reason == "" {
		t.Errorf("got %+v", got)
	}
}

// R6: who is asked when.
func TestPause(t *testing.T) {
	const interval = 5 * time.Second
	asked := time.Now()
	a := new(Asker)
	a.Configure(interval, time.Second)
	for _, test := range []struct {
		name string
		last Verdict
		work Work
		want time.Duration
	}{
		{"idle", Verdict{Finding: Serving, Answered: true}, Work{}, interval},
		{"a call has finished", Verdict{Finding: Serving, Answered: true}, Work{Answered: asked.Add(2 * time.Second)}, interval + 2*time.Second},
		{"a call had finished before", Verdict{Finding: Serving, Answered: true}, Work{Answered: asked.Add(-time.Second)}, interval},
		{"busy", Verdict{Finding: Busy}, Work{InFlight: 5}, interval},
		{"out", Verdict{Finding: NotServing, Answered: true}, Work{}, SickPoll},
		{"a fault", Verdict{Finding: Failed, Answered: true}, Work{}, SickPoll},
		{"missed", Verdict{Finding: Failed}, Work{}, SickPoll},
		{"first doubt", Verdict{Finding: Busy}, Work{InFlight: 1, Doubtful: true}, 0},
		{"more doubt", Verdict{Finding: Busy, Doubted: true}, Work{InFlight: 1, Doubtful: true}, SickPoll},
	} {
		test.last.Asked = asked
		if got := a.pause(test.last, test.work); got != test.want {
			t.Errorf("%s: asked after %v, want %v", test.name, got, test.want)
		}
	}
}

// ask puts one question to whoever listens at the address.
func ask(t *testing.T, listener net.Listener, timeout time.Duration, work Work) Verdict {
	t.Helper()
	a, err := Open(Options{
		Network: "tcp", Address: listener.Addr().String(), Interval: time.Hour, Timeout: timeout,
		Work: func() Work { return work },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if !a.Due(Verdict{}) {
		t.Error("the first question is not due")
	}
	began := time.Now()
	v := a.Ask(t.Context())
	if v.Asked.Before(began) || v.Asked.After(time.Now()) {
		t.Errorf("asked at %v", v.Asked)
	}
	return v
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

// What a server says is heard, with and without a health service.
func TestAskHears(t *testing.T) {
	checks := health.NewServer()
	for _, test := range []struct {
		name  string
		serve func(*grpc.Server)
		want  Finding
	}{
		{"SERVING", func(s *grpc.Server) { grpc_health_v1.RegisterHealthServer(s, checks) }, Serving},
		{"NOT_SERVING", func(s *grpc.Server) {
			grpc_health_v1.RegisterHealthServer(s, checks)
			checks.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		}, NotServing},
		{"no service", func(*grpc.Server) {}, Serving},
	} {
		listener, server := listen(t), grpc.NewServer()
		test.serve(server)
		done := make(chan error, 1)
		go func() { done <- server.Serve(listener) }()
		if v := ask(t, listener, 10*time.Second, Work{}); v.Finding != test.want || !v.Answered {
			t.Errorf("%s: %+v", test.name, v)
		}
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
	if v := ask(t, listener, 10*time.Second, Work{}); v.Finding != Serving || !v.Answered {
		t.Errorf("%+v", v)
	}
	server.Close()
	<-done
}

// R6: who accepts and is silent has not answered; while calls run there it is
// busy.
func TestAskHearsSilence(t *testing.T) {
	silent := listen(t)
	if v := ask(t, silent, 50*time.Millisecond, Work{}); v.Finding != Failed || v.Answered || v.Reason == "" {
		t.Errorf("idle: %+v", v)
	}
	if v := ask(t, silent, 50*time.Millisecond, Work{InFlight: 1}); v.Finding != Busy || v.Answered {
		t.Errorf("with a call: %+v", v)
	}
	// A doubt is settled within a second however long the timeout is.
	if v := ask(t, silent, time.Hour, Work{InFlight: 1, Doubtful: true}); v.Finding != Busy || !v.Doubted {
		t.Errorf("doubtful: %+v", v)
	}
}

// Nobody is there: no answer.
func TestAskHearsNobody(t *testing.T) {
	gone := listen(t)
	gone.Close()
	if v := ask(t, gone, 10*time.Second, Work{}); v.Finding != Failed || v.Answered {
		t.Errorf("%+v", v)
	}
}

// R6: what is thought of an endpoint after all that it has said.
func TestStanding(t *testing.T) {
	good := Verdict{Finding: Serving, Answered: true}
	missed := Verdict{Finding: Failed}
	fault := Verdict{Finding: Failed, Answered: true}
	refused := Verdict{Finding: Busy, Answered: true}
	occupied := Verdict{Finding: Busy}
	doubtful := Verdict{Finding: Busy, Doubted: true}
	out := Verdict{Finding: NotServing, Answered: true}
	for _, test := range []struct {
		name             string
		heard            []Verdict
		serving, suspect bool
	}{
		{"nothing yet", nil, false, false},
		{"silent from the beginning", []Verdict{missed, missed, missed, missed}, false, false},
		{"well", []Verdict{good}, true, false},
		{"not serving", []Verdict{good, out}, false, false},
		{"back", []Verdict{good, out, good}, true, false},
		{"idle and silent", []Verdict{good, missed}, true, true},
		{"idle and silent three times", []Verdict{good, missed, missed, missed}, false, false},
		{"answers again", []Verdict{good, missed, missed, good}, true, false},
		{"two faults", []Verdict{good, fault, fault}, true, false},
		{"three faults", []Verdict{good, fault, fault, fault}, false, false},
		{"a fault is an answer", []Verdict{good, missed, fault}, true, false},
		{"busy for ever", []Verdict{good, occupied, refused, occupied, occupied}, true, false},
		{"busy does not bring back", []Verdict{good, out, occupied}, false, false},
		{"overdue, no answer", []Verdict{good, doubtful}, true, true},
		{"calls came after a missed question", []Verdict{good, missed, occupied}, true, true},
		{"silent, busy, silent", []Verdict{good, missed, missed, occupied, missed}, true, true},
	} {
		var s Standing
		for _, v := range test.heard {
			s.Hear(v)
		}
		if s.Serving != test.serving || s.Suspect != test.suspect {
			t.Errorf("%s: serving %v, suspect %v", test.name, s.Serving, s.Suspect)
		}
	}
}

// R6: a byte of an answer ends a suspicion if it came after the question.
func TestStandingSpeaks(t *testing.T) {
	asked := time.Now()
	s := Standing{Serving: true}
	s.Hear(Verdict{Finding: Failed, Asked: asked})
	s.Speak(asked.Add(-time.Second))
	if !s.Suspect {
		t.Error("a byte from before the question")
	}
	s.Speak(asked.Add(time.Second))
	if s.Suspect {
		t.Error("a byte that came after it")
	}
}
