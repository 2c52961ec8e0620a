package health

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// Finding is what one question told.
type Finding uint8

const (
	// Failed is no answer, or one that tells of a fault.
	Failed Finding = iota
	// Serving is SERVING, or an endpoint without health service that answers.
	Serving
	// NotServing is NOT_SERVING.
	NotServing
	// Busy is no answer, which is no wonder while calls run there (R6).
	Busy
)

// Verdict is a finding with its ground. The zero value is an endpoint that was
// never asked.
type Verdict struct {
	Finding  Finding
	Reason   string    // for the log; empty when Serving
	Asked    time.Time // when the question was put
	Answered bool      // the endpoint said something, whatever it was
	Refused  bool      // what it said is that it has no free thread
	Doubted  bool      // it was asked because calls there should long be over
}

// TurnsAway is the reason of an endpoint that is suspect for what it does with calls,
// whatever it says of its health.
const TurnsAway = "it ends connections with calls on them that it has not looked at (GOAWAY)"

// notGRPC is what grpc-go says of an answer of HTTP that is none of gRPC; no code
// tells it from a handler's failure.
const notGRPC = "received unexpected content-type"

// explain says what came in place of an answer, without what the library puts around
// it.
func explain(err error) string {
	text := status.Convert(err).Message()
	if _, inner, wrapped := strings.Cut(text, "connection error: desc = "); wrapped {
		if plain, err := strconv.Unquote(inner); err == nil {
			text = plain
		}
	}
	switch status.Code(err) {
	case codes.Unavailable:
		return strings.TrimPrefix(text, "transport: Error while dialing: ")
	case codes.DeadlineExceeded:
		return "no answer to the health question in time"
	}
	return fmt.Sprintf("the health question is answered %v: %s", status.Code(err), text)
}

// judge reads the answer of an endpoint that is, or is not, working on calls.
//
// Without a statement about service "" (no health service: UNIMPLEMENTED; the
// service unknown to it: NOT_FOUND, SERVICE_UNKNOWN; asked for credentials; no
// gRPC at all) an endpoint that answers is good. Health runs in the worker's own pool, so while
// calls are in flight a refusal or silence is saturation, not sickness (R6).
func judge(answer grpc_health_v1.HealthCheckResponse_ServingStatus, err error, working bool) Verdict {
	if err == nil {
		if answer == grpc_health_v1.HealthCheckResponse_NOT_SERVING {
			return Verdict{Finding: NotServing, Answered: true, Reason: "health service says NOT_SERVING"}
		}
		return Verdict{Finding: Serving, Answered: true}
	}
	v := Verdict{Finding: Failed, Answered: true, Reason: explain(err)}
	switch status.Code(err) {
	case codes.Unimplemented, codes.NotFound, codes.Unauthenticated, codes.PermissionDenied:
		return Verdict{Finding: Serving, Answered: true}
	case codes.Unavailable, codes.DeadlineExceeded:
		// Both are made on this side when nothing comes from the other.
		v.Answered = false
	case codes.ResourceExhausted:
		v.Refused = true
	case codes.Unknown:
		if strings.Contains(err.Error(), notGRPC) {
			return Verdict{Finding: Serving, Answered: true}
		}
		return v
	default:
		return v
	}
	if working {
		v.Finding = Busy
	}
	return v
}
