package check

import (
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/health"
)

// notGRPC is what grpc-go says of an answer of HTTP that is none of gRPC; no code
// tells it from a handler's failure.
const notGRPC = "received unexpected content-type"

// notFound is how grpcio, for Python, answers calls of methods that are not there, whether
// its handlers have threads, or run in one (asyncio): it does so before it looks for one.
const notFound = "Method not found!"

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

// read reads what came of a question, and why it is no good answer.
//
// Without a statement about service "" (no health service: UNIMPLEMENTED; the
// service unknown to it: NOT_FOUND, SERVICE_UNKNOWN; asked for credentials; no
// gRPC at all) an endpoint that answers is good.
func read(answer grpc_health_v1.HealthCheckResponse_ServingStatus, err error) (said health.Said, reason string) {
	if err == nil {
		if answer == grpc_health_v1.HealthCheckResponse_NOT_SERVING {
			return health.NotServing, "health service says NOT_SERVING"
		}
		return health.Serving, ""
	}
	switch status.Code(err) {
	case codes.Unimplemented:
		if status.Convert(err).Message() == notFound {
			return health.Library, ""
		}
		return health.NoService, ""
	case codes.NotFound, codes.Unauthenticated, codes.PermissionDenied:
		return health.NoService, ""
	case codes.Unavailable, codes.DeadlineExceeded:
		// Both are made on this side when nothing comes from the other.
		return health.Nothing, explain(err)
	case codes.ResourceExhausted:
		return health.Refused, explain(err)
	case codes.Unknown:
		if strings.Contains(err.Error(), notGRPC) {
			return health.NoService, ""
		}
	}
	return health.Fault, explain(err)
}
