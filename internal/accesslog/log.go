package accesslog

import (
	"encoding/hex"
	"encoding/json"
	"io"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/relay"
	"github.com/cabrank/cabrank/internal/sink"
)

// Choice says which calls are written.
type Choice struct {
	// Share of the calls that ended well and were not slow: 0 none, 1 all.
	Share float64
	// Slow calls took longer. Zero: none is slow.
	Slow time.Duration
}

// Log is a log of calls.
//
// Life: New, Call, Close.
// Concurrency: every method may be called from anywhere.
type Log struct {
	choice atomic.Pointer[Choice]
	sink   *sink.Sink
	lines  *sink.Source
	pool   sync.Pool // of *[]byte
}

// New returns a log that writes to a writer, which may block.
func New(choice Choice, to io.Writer) *Log {
	l := &Log{sink: sink.New(to)}
	l.pool.New = func() any { return new(make([]byte, 0, 512)) }
	l.choice.Store(&choice)
	l.lines = l.sink.Source(func(to []byte, lines int) []byte {
		to = append(appendTime(append(to, `{"time":"`...), time.Now()), `","msg":"log lines dropped","lines":`...)
		return append(strconv.AppendInt(to, int64(lines), 10), "}\n"...)
	})
	l.sink.Open()
	return l
}

// Choose changes which calls are written.
func (l *Log) Choose(choice Choice) { l.choice.Store(&choice) }

// Dropped returns how many lines were not written: nobody took them in time, or the
// writer failed.
func (l *Log) Dropped() uint64 { return l.sink.Dropped() }

// Close writes what is left, for a second at most.
func (l *Log) Close() { l.sink.Close() }

// Call takes a finished call. It does not wait.
func (l *Log) Call(a *relay.Access) {
	if !l.wants(a) {
		return
	}
	line, _ := l.pool.Get().(*[]byte)
	*line = appendCall((*line)[:0], a, time.Now())
	_, _ = l.lines.Write(*line) // it never fails
	l.pool.Put(line)
}

func (l *Log) wants(a *relay.Access) bool {
	c := l.choice.Load()
	switch {
	case a.Reason != "" || isError(a):
		return true
	case c.Slow > 0 && a.Took > c.Slow:
		return true
	}
	return c.Share >= 1 || c.Share > 0 && rand.Float64() < c.Share
}

func isError(a *relay.Access) bool {
	if a.GRPC {
		return a.Code != grpcwire.OK
	}
	return a.Status == 0 || a.Status >= 400
}

// appendCall appends a line. What is empty or zero is left out, but for the times.
func appendCall(b []byte, a *relay.Access, now time.Time) []byte {
	b = appendTime(append(b, `{"time":"`...), now)
	b = appendText(append(b, `","method":`...), a.Path)
	if a.GRPC {
		b = append(append(append(b, `,"code":"`...), a.Code.String()...), '"')
	} else {
		b = appendInt(b, `,"status":`, int64(a.Status))
	}
	b = appendWord(b, `,"reason":`, a.Reason)
	b = appendWord(b, `,"worker":`, a.Worker)
	b = appendMillis(b, `,"queue_ms":`, a.Waited)
	b = appendMillis(b, `,"worker_ms":`, a.Worked)
	b = appendMillis(b, `,"total_ms":`, a.Took)
	b = appendInt(b, `,"bytes_in":`, a.Received)
	b = appendInt(b, `,"bytes_out":`, a.Sent)
	b = appendWord(b, `,"caller":`, a.Caller.Address)
	b = appendWord(b, `,"user":`, a.Caller.Identity)
	b = appendWord(b, `,"door":`, a.Caller.Door)
	if a.Hops > 0 {
		b = appendInt(b, `,"hops":`, int64(a.Hops))
	}
	if a.Tries > 0 {
		b = appendInt(b, `,"retries":`, int64(a.Tries))
	}
	if a.Trace != [16]byte{} {
		b = append(hex.AppendEncode(append(b, `,"trace_id":"`...), a.Trace[:]), '"')
	}
	return append(b, "}\n"...)
}

func appendTime(b []byte, now time.Time) []byte {
	return now.UTC().AppendFormat(b, "2006-01-02T15:04:05.000000Z")
}

func appendInt(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(append(b, key...), n, 10)
}

// appendMillis writes milliseconds to the microsecond: 0, 0.412, 12.5.
func appendMillis(b []byte, key string, d time.Duration) []byte {
	return strconv.AppendFloat(append(b, key...), float64(d.Microseconds())/1000, 'f', -1, 64)
}

func appendWord(b []byte, key, word string) []byte {
	if word == "" {
		return b
	}
	return appendText(append(b, key...), []byte(word))
}

// appendText appends any octets as a text of JSON.
func appendText(b, text []byte) []byte {
	for _, c := range text {
		if c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(string(text)) //nolint:errchkjson // texts always are JSON
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}
