package trace

import (
	"bytes"
	"compress/gzip"
	"net"
	"strconv"
	"strings"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/cabrank/cabrank/internal/grpcwire"
)

const (
	// conventions name the attributes, but for those that begin with cabrank.
	conventions = "https://opentelemetry.io/schemas/1.45.0"
	// serverErrors are the codes, a bit each, that are errors of a server and not of its caller.
	serverErrors = 1<<grpcwire.Unknown | 1<<grpcwire.DeadlineExceeded | 1<<grpcwire.Unimplemented |
		1<<grpcwire.Internal | 1<<grpcwire.Unavailable | 1<<grpcwire.DataLoss
	// mostKept bounds the attributes that are kept encoded: most come again.
	mostKept = 512
	port     = "server.port"
)

// encoder makes requests of records. Its memory is used again for the next one.
type encoder struct {
	// On the wire it is an ExportTraceServiceRequest, whose package would bring gRPC's gateway.
	request    *otlp.TracesData
	scope      *otlp.ScopeSpans
	spans      []*otlp.Span
	kept       map[[2]string][]byte // by key and value
	attributes []byte               // of all spans
	plain      []byte
	packed     bytes.Buffer
	gzip       *gzip.Writer // nil: requests are not compressed
}

func newEncoder(o *Options) encoder {
	process := &resource.Resource{}
	for key, value := range o.Resource {
		process.Attributes = append(process.Attributes, attribute(key, value))
	}
	scope := &otlp.ScopeSpans{Scope: &common.InstrumentationScope{Name: "cabrank", Version: o.Version}, SchemaUrl: conventions}
	e := encoder{scope: scope, kept: make(map[[2]string][]byte)}
	e.request = &otlp.TracesData{ResourceSpans: []*otlp.ResourceSpans{{Resource: process, ScopeSpans: []*otlp.ScopeSpans{scope}}}}
	if !o.Plain {
		e.gzip, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level exists
	}
	return e
}

// encode returns a request. zero is the time at which the relay's clock was zero.
func (e *encoder) encode(calls []*Call, zero time.Time) (body []byte, err error) {
	e.spans, e.attributes = e.spans[:0], e.attributes[:0]
	for _, c := range calls {
		e.addCall(c, zero)
	}
	e.scope.Spans = e.spans
	if e.plain, err = (proto.MarshalOptions{}).MarshalAppend(e.plain[:0], e.request); err != nil || e.gzip == nil {
		return e.plain, err
	}
	e.packed.Reset()
	e.gzip.Reset(&e.packed)
	_, _ = e.gzip.Write(e.plain) // a buffer takes all
	err = e.gzip.Close()
	return e.packed.Bytes(), err
}

func (e *encoder) addCall(c *Call, zero time.Time) {
	path := strings.ToValidUTF8(strings.TrimPrefix(string(c.Path), "/"), "\uFFFD")
	name, method, original, attempts := path, path, "", ""
	if !c.Known {
		name, method, original = "grpc", "_OTHER", path
	}
	if c.attempts > mostAttempts {
		attempts = strconv.Itoa(c.attempts)
	}
	e.add(c, &c.self, otlp.Span_SPAN_KIND_SERVER, name, serverErrors>>c.Code&1 != 0, zero,
		"rpc.system.name", "grpc", "rpc.method", method, "rpc.method_original", original, "rpc.status_code", c.Code.String(),
		"client.address", c.caller, "cabrank.door", c.Door, "cabrank.reason", c.Reason, "cabrank.attempts", attempts)
	for i := range c.parts {
		p := &c.parts[i]
		if p.kind == Queue {
			e.add(c, p, otlp.Span_SPAN_KIND_INTERNAL, Queue, false, zero)
			continue
		}
		host, number, err := net.SplitHostPort(p.address)
		if err != nil {
			host = p.address // the path of a Unix socket
		}
		e.add(c, p, otlp.Span_SPAN_KIND_CLIENT, name, p.code != grpcwire.OK, zero,
			"rpc.system.name", "grpc", "rpc.method", method, "rpc.method_original", original, "rpc.status_code", p.code.String(),
			"server.address", host, port, number, "cabrank.attempt", p.kind, "cabrank.worker", p.worker, "cabrank.ended", p.ended)
	}
}

// add adds the span of a part. Its attributes are key and value in turn; those without a value
// are left out.
func (e *encoder) add(c *Call, p *part, kind otlp.Span_SpanKind, name string, failed bool, zero time.Time, attributes ...string) {
	s := &otlp.Span{
		TraceId: c.From.Trace[:], SpanId: p.span[:], Flags: uint32(c.From.Flags), TraceState: strings.ToValidUTF8(string(c.state), ""), Name: name, Kind: kind,
		StartTimeUnixNano: uint64(zero.Add(p.start).UnixNano()), EndTimeUnixNano: uint64(zero.Add(p.end).UnixNano()),
	}
	switch {
	case p != &c.self:
		s.ParentSpanId = c.self.span[:]
	case c.From.Span != (ID{}):
		s.ParentSpanId = c.From.Span[:]
	}
	if failed {
		s.Status = &otlp.Status{Code: otlp.Status_STATUS_CODE_ERROR}
		attributes = append(attributes, "error.type", p.code.String())
	}
	from := len(e.attributes)
	for i := 0; i < len(attributes); i += 2 {
		if attributes[i+1] != "" {
			e.attributes = append(e.attributes, e.encoded(attributes[i], attributes[i+1])...)
		}
	}
	s.ProtoReflect().SetUnknown(e.attributes[from:len(e.attributes):len(e.attributes)])
	e.spans = append(e.spans, s)
}

// encoded returns the attribute of a span as it is on the wire. Spans have it among the fields
// that they are said not to know, so that it is encoded once for all.
func (e *encoder) encoded(key, value string) []byte {
	at := [2]string{key, value}
	if e.kept[at] == nil {
		if len(e.kept) >= mostKept {
			clear(e.kept)
		}
		e.kept[at], _ = proto.Marshal(&otlp.Span{Attributes: []*common.KeyValue{attribute(key, value)}})
	}
	return e.kept[at]
}

func attribute(key, value string) *common.KeyValue {
	a := &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: strings.ToValidUTF8(value, "\uFFFD")}}
	if n, err := strconv.ParseInt(value, 10, 64); key == port && err == nil {
		a.Value = &common.AnyValue_IntValue{IntValue: n}
	}
	return &common.KeyValue{Key: key, Value: a}
}
