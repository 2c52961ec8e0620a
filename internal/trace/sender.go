package trace

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

const (
	// firstPause is the most between two attempts at a batch, and doubles with each.
	firstPause = 500 * time.Millisecond
	// aMinute bounds the attempts at a batch, and the pause that a collector may ask for. The
	// log has a failure as often.
	aMinute = time.Minute
	// mostAnswer bounds what is read of an answer, bytes.
	mostAnswer = 64 << 10
)

// sender sends spans to a collector. It follows no redirect, as the headers are secrets.
type sender struct {
	Options
	encoder encoder
	http    http.RoundTripper
	told    time.Time // when the log had a failure
}

func newSender(o Options) sender {
	return sender{Options: o, encoder: newEncoder(&o), http: &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: o.TLS, DisableCompression: true,
		MaxResponseHeaderBytes: mostAnswer, IdleConnTimeout: aMinute,
	}}
}

// send sends the spans of calls, and again where that may help until stop is closed. It returns
// how many were rejected.
//
// Source: OTLP specification 1.9, "OTLP/HTTP Response" and "OTLP/HTTP Connection".
func (s *sender) send(ctx context.Context, stop <-chan struct{}, calls []*Call) (rejected int, err error) {
	body, err := s.encoder.encode(calls, time.Now().Add(-s.Clock()))
	if err != nil {
		return 0, err
	}
	until := time.Now().Add(aMinute)
	for pause := firstPause; ; pause *= 2 {
		rejected, wait, err := s.post(ctx, body)
		if err != nil && time.Since(s.told) >= aMinute {
			s.told = time.Now()
			s.Log.Warn("the collector does not take spans", "collector", s.URL.Host, "error", err)
		}
		if wait < 0 || time.Now().After(until) {
			return rejected, err
		}
		select {
		case <-time.After(min(wait+rand.N(pause), aMinute)):
		case <-stop:
			return 0, err
		}
	}
}

// post makes one attempt. wait is the least pause before the next, negative if none would help.
func (s *sender) post(ctx context.Context, body []byte) (rejected int, wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	r := &http.Request{Method: http.MethodPost, URL: s.URL, Header: s.Header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body))}
	answer, err := s.http.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusOK:
		text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
		return rejectedIn(text), -1, err
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		seconds, _ := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 16)
		wait = time.Duration(seconds) * time.Second
	default:
		wait = -1
	}
	return 0, wait, fmt.Errorf("status %d", answer.StatusCode)
}

// rejectedIn reads partial_success.rejected_spans of an ExportTraceServiceResponse. Each is
// the first field of its message, as the field of a wrapper is.
func rejectedIn(answer []byte) int {
	var partial wrapperspb.BytesValue
	var spans wrapperspb.Int64Value
	if proto.Unmarshal(answer, &partial) != nil || proto.Unmarshal(partial.Value, &spans) != nil {
		return 0
	}
	return int(max(spans.Value, 0))
}
