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

	"google.golang.org/protobuf/encoding/protowire"
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
	switch code := answer.StatusCode; {
	case code/100 == 2:
		text, err := io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
		return rejectedIn(text), -1, err
	case code == http.StatusTooManyRequests || code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		seconds, _ := strconv.ParseUint(answer.Header.Get("Retry-After"), 10, 16)
		wait = time.Duration(seconds) * time.Second
	default:
		wait = -1
	}
	return 0, wait, fmt.Errorf("status %d", answer.StatusCode)
}

// rejectedIn reads partial_success.rejected_spans of an ExportTraceServiceResponse.
func rejectedIn(answer []byte) int {
	partial, _ := protowire.ConsumeBytes(field1(answer, protowire.BytesType))
	spans, _ := protowire.ConsumeVarint(field1(partial, protowire.VarintType))
	return int(min(max(int64(spans), 0), mostSpans))
}

// field1 returns a message from the value of its field 1 on, or nothing.
func field1(message []byte, of protowire.Type) []byte {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		size := protowire.ConsumeFieldValue(field, kind, message[max(n, 0):])
		switch {
		case n < 0 || size < 0:
			return nil
		case field == 1 && kind == of:
			return message[n:]
		}
		message = message[n+size:]
	}
	return nil
}
