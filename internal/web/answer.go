package web

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/cabrank/cabrank/internal/h2"
)

// pieceSize is how much of an answer is gathered before it leaves without a Flush. An
// answer that is no larger says its length.
const pieceSize = 4 << 10

// unknown is the length of a body that nobody has told.
const unknown = -1

// answer is what a handler writes to (http.ResponseWriter, http.Flusher), with the
// meaning that each method has in net/http for HTTP/2.
//
// Concurrency: of one goroutine at a time, as net/http has it.
type answer struct {
	stream   Stream
	bodyless bool // to HEAD

	header   http.Header // the handler's own
	head     http.Header // as it was at WriteHeader
	status   int         // 0: not decided
	length   int64       // by the handler's content-length; unknown
	written  int64       // of the body
	piece    []byte      // what waits for more
	trailers []string    // names that the head has declared
	began    bool        // the head has left
	ended    bool        // and nothing follows it
	err      error       // nothing leaves any more
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. A second status is passed over.
func (a *answer) WriteHeader(status int) {
	switch {
	case status < 100 || status > 999 || status == http.StatusSwitchingProtocols:
		panic("web: a handler has set the status " + strconv.Itoa(status)) //nolint:forbidigo // the handler's own mistake, which ends its stream
	case a.status != 0:
		return
	case status < 200:
		a.stream.WriteInterim(appendHeader(appendStatus(status), a.header))
		return
	}
	a.status, a.head = status, a.header.Clone()
	if said := a.head.Get("Content-Length"); said != "" {
		if n, err := strconv.ParseInt(said, 10, 64); err == nil && n >= 0 {
			a.length = n
		} else {
			a.head.Del("Content-Length")
		}
	}
	for name := range declaredTrailers(a.head.Clone()) {
		a.trailers = append(a.trailers, name)
	}
}

// Write implements io.Writer. It waits while the caller does not take the answer.
//
// Errors: http.ErrBodyNotAllowed, http.ErrContentLength, or that the caller has gone.
func (a *answer) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	switch {
	case a.err != nil:
		return 0, a.err
	case !hasBody(a.status):
		return 0, http.ErrBodyNotAllowed
	case a.length != unknown && a.written+int64(len(p)) > a.length:
		return 0, http.ErrContentLength
	}
	a.written += int64(len(p))
	if len(a.piece)+len(p) <= pieceSize {
		a.piece = append(a.piece, p...)
		return len(p), nil
	}
	if len(a.piece) == 0 {
		a.begin(p, false)
	}
	if a.flush(); len(p) > pieceSize {
		a.leave(p)
	} else {
		a.piece = append(a.piece, p...)
	}
	if a.err != nil {
		return 0, a.err
	}
	return len(p), nil
}

// WriteString implements io.StringWriter.
func (a *answer) WriteString(s string) (int, error) { return a.Write([]byte(s)) }

// Flush implements http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// FlushError is Flush for http.ResponseController.
func (a *answer) FlushError() error {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.flush()
	return a.err
}

// EnableFullDuplex is for http.ResponseController: streams are so.
func (a *answer) EnableFullDuplex() error { return nil }

// flush hands on what there is, the head first.
func (a *answer) flush() {
	a.begin(a.piece, false)
	if len(a.piece) > 0 {
		a.leave(a.piece)
		a.piece = a.piece[:0]
	}
}

// leave hands on bytes of the body, of which none are an answer to HEAD.
func (a *answer) leave(p []byte) {
	if a.err == nil && !a.bodyless {
		_, a.err = a.stream.Write(p, false)
	}
}

// begin hands on the head, if that was not done yet, of a body that begins so. With end
// nothing follows; nor does it where there is no body.
func (a *answer) begin(body []byte, end bool) {
	if a.began || a.err != nil {
		return
	}
	a.began, a.ended = true, end || a.bodyless || !hasBody(a.status)
	if _, typed := a.head["Content-Type"]; !typed && len(body) > 0 && a.head.Get("Content-Encoding") == "" {
		a.head.Set("Content-Type", http.DetectContentType(body))
	}
	if _, dated := a.head["Date"]; !dated {
		a.head.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	}
	a.err = a.stream.WriteHead(appendHeader(appendStatus(a.status), a.head), a.ended)
}

// finish ends the answer when the handler has returned.
func (a *answer) finish() {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if !a.began && a.length == unknown && hasBody(a.status) && (a.written > 0 || !a.bodyless) {
		a.head.Set("Content-Length", strconv.FormatInt(a.written, 10))
	}
	trailers, short := a.takeTrailers(), a.length != unknown && a.written < a.length
	a.begin(a.piece, len(a.piece) == 0 && trailers == nil && !short)
	switch {
	case a.err != nil || a.ended:
	case short: // RFC 9113 8.1.1: the message would be malformed
		a.stream.Reset(h2.InternalError)
	case trailers == nil:
		_, a.err = a.stream.Write(a.piece, true)
	default:
		if a.flush(); a.err == nil {
			a.err = a.stream.WriteHead(trailers, true)
		}
	}
}

// takeTrailers returns the block of what the handler has set behind the body: names
// that it had declared, or with http.TrailerPrefix; nil if there is nothing.
func (a *answer) takeTrailers() []byte {
	set := make(http.Header)
	for _, name := range a.trailers {
		if values := a.header[name]; values != nil {
			set[name] = values
		}
	}
	for name, values := range a.header {
		if name, is := strings.CutPrefix(name, http.TrailerPrefix); is && httpguts.ValidTrailerHeader(name) {
			set[http.CanonicalHeaderKey(name)] = values
		}
	}
	return appendHeader(nil, set)
}

// hasBody reports whether answers of a status have a body (RFC 9110 6.4.1).
func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

func appendStatus(status int) []byte { return h2.AppendField(nil, ":status", strconv.Itoa(status)) }

// appendHeader appends the fields of h, in the order of their names, but those that
// belong to a connection (RFC 9113 8.2.2), and what is no field.
func appendHeader(block []byte, h http.Header) []byte {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		switch lower := strings.ToLower(name); lower {
		case "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade":
		default:
			if !httpguts.ValidHeaderFieldName(name) { // such as those with http.TrailerPrefix
				continue
			}
			for _, value := range h[name] {
				if httpguts.ValidHeaderFieldValue(value) {
					block = h2.AppendField(block, lower, strings.TrimSpace(value))
				}
			}
		}
	}
	return block
}
