package worker

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/cabrank/cabrank/internal/health"
)

const (
	// warmUpPause is the least time between two warm-up calls: unlike a health
	// check they are work for the worker.
	warmUpPause = 250 * time.Millisecond
	// maxWarmUpAnswer bounds the answer, whose content is ignored.
	maxWarmUpAnswer = 64 << 20
)

// WarmUp is a unary call that a worker must answer with OK before it takes
// others, so that classes are loaded, caches filled and connections opened
// before callers wait for it. It comes after the health check, on the same
// connection, and is repeated until it succeeds or Settings.BootTimeout is over.
type WarmUp struct {
	// Method is "/package.Service/Method". Empty means no warm-up call.
	Method string `key:"method" kind:"method" default:"none" help:"unary method that each worker is called with once, before it gets any other call"`
	// Message is the request in the method's own encoding. Empty is a message
	// without fields.
	Message []byte `key:"message" kind:"base64" default:"none" help:"message of that call, serialized, in base64; none is a message without fields"`
}

// call makes one warm-up call. The error says why the worker is not warm, for
// the log; unknown reports that the worker does not have the method, so that waiting
// does not help.
func (w *WarmUp) call(ctx context.Context, limit time.Duration, conn grpc.ClientConnInterface) (unknown bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = conn.Invoke(ctx, w.Method, w.Message, nil, grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(maxWarmUpAnswer))
	code := status.Code(err)
	switch {
	case err == nil:
		return false, nil
	case code == codes.Unimplemented:
		return true, fmt.Errorf("warm-up: the worker has no method %s", w.Method)
	}
	return false, fmt.Errorf("warm-up: %s answered %v: %s", w.Method, code, status.Convert(err).Message())
}

// warm makes the warm-up call of a worker after the good finding f, and returns f or why
// the worker is not warm.
func (p *prober) warm(ctx context.Context, f finding) finding {
	cold := failed("warm-up: waiting for the answer of " + p.warmUp.Method)
	cold.Said, cold.Asked = health.Fault, time.Now()
	if !p.warmed {
		p.warmed = true // later attempts keep the reason of the first one
		p.tell(ctx, cold)
	}
	unknown, err := p.warmUp.call(ctx, p.warmTime, p.asker.Conn())
	if err == nil {
		return f
	}
	cold.unknown, cold.Reason = unknown, err.Error()
	sleep(ctx, warmUpPause)
	return cold
}

// hearWarmUp logs once that the warm-up method does not exist: that is a fault of the
// configuration or of the deployed version, and a restart does not help.
func (w *worker) hearWarmUp(f finding) {
	method := w.occupancy.version.options.WarmUp.Method
	switch {
	case f.IsGood():
		w.faulty = ""
	case f.unknown && w.faulty != method:
		w.faulty = method
		w.log.Error("worker has no method for the warm-up call and will not be ready", "method", method)
	}
}

// rawCodec sends bytes as they are and reads no answer. Its name is empty so
// that the content type is application/grpc, which every server takes.
type rawCodec struct{}

func (rawCodec) Name() string { return "" }

func (rawCodec) Marshal(message any) (mem.BufferSlice, error) {
	raw, ok := message.([]byte)
	if !ok {
		return nil, fmt.Errorf("raw codec: got %T, want bytes", message)
	}
	return mem.BufferSlice{mem.SliceBuffer(raw)}, nil
}

func (rawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }
