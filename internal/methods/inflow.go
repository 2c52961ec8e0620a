package methods

import (
	"errors"
	"fmt"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

// next returns the next message of an answer. It is good until the next call.
//
// Errors: io.EOF at the end of a whole answer; relay.ErrCallCut; a failure.
func next(from *grpcwire.Messages) ([]byte, error) {
	message, compressed, err := from.Next()
	switch {
	case errors.Is(err, grpcwire.ErrPrefixFlag):
		return nil, fail(grpcwire.Internal, "the worker does not speak gRPC")
	case errors.Is(err, grpcwire.ErrTooLong):
		return nil, fail(grpcwire.ResourceExhausted, fmt.Sprintf("a message of the answer is longer than %d MiB", from.Most>>20))
	case errors.Is(err, grpcwire.ErrNoRoom):
		return nil, fail(grpcwire.ResourceExhausted, "the answers of this caller take too much memory")
	case compressed:
		return nil, fail(grpcwire.Internal, "the worker has compressed its answer, which was not asked for")
	}
	return message, err
}
