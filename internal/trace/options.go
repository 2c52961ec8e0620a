package trace

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Options say where spans go, as Read reads it, and what else a tracer needs.
type Options struct {
	URL      *url.URL
	Header   http.Header // of requests; values are secrets
	Timeout  time.Duration
	Plain    bool              // requests are not compressed
	TLS      *tls.Config       // nil: the system's authorities
	Resource map[string]string // attributes of this process

	Share   float64              // of the calls without a trace that begin one, 0 to 1
	Clock   func() time.Duration // the relay's
	Log     *slog.Logger
	Version string // of Cabrank
}

// Read returns the options for tracing.endpoint, a URL or env, with what the variables of
// OpenTelemetry say.
//
// Errors: one line with what is wrong where, which has no value that may be a secret.
// Source: OpenTelemetry specification 1.55, "OpenTelemetry Protocol Exporter".
func Read(endpoint string, variable func(name string) string) (o Options, err error) {
	// get returns a variable and its name: that for traces, if it is set.
	get := func(what, otherwise string) (value, name string) {
		if name = "OTEL_EXPORTER_OTLP_TRACES_" + what; variable(name) == "" {
			name = "OTEL_EXPORTER_OTLP_" + what
		}
		return cmp.Or(variable(name), otherwise), name
	}
	name := "tracing.endpoint"
	if endpoint == "env" {
		endpoint, name = get("ENDPOINT", "")
	}
	if o.URL, err = readURL(name, endpoint); err != nil {
		return o, err
	}
	timeout, name := get("TIMEOUT", "10000")
	ms, err := strconv.ParseUint(timeout, 10, 31)
	if err != nil || ms == 0 {
		return o, fmt.Errorf("%s: %q: give milliseconds, such as 10000", name, timeout)
	}
	o.Timeout = time.Duration(ms) * time.Millisecond
	if protocol, name := get("PROTOCOL", "http/protobuf"); protocol != "http/protobuf" {
		return o, fmt.Errorf("%s: %q: Cabrank sends http/protobuf; set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL to it", name, protocol)
	}
	packing, name := get("COMPRESSION", "gzip")
	if o.Plain = packing == "none"; !o.Plain && packing != "gzip" {
		return o, fmt.Errorf("%s: %q: give gzip or none", name, packing)
	}
	if file, name := get("CERTIFICATE", ""); file != "" {
		text, err := os.ReadFile(file)
		o.TLS = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
		if err != nil || !o.TLS.RootCAs.AppendCertsFromPEM(text) {
			return o, fmt.Errorf("%s: %q: give a file of certificates in PEM", name, file)
		}
	}
	headers, name := get("HEADERS", "")
	if err := o.readHeaders(name, headers); err != nil {
		return o, err
	}
	o.Resource, err = pairs("OTEL_RESOURCE_ATTRIBUTES", variable("OTEL_RESOURCE_ATTRIBUTES"))
	if err == nil {
		o.Resource["service.name"] = cmp.Or(variable("OTEL_SERVICE_NAME"), o.Resource["service.name"], "cabrank")
	}
	return o, err
}

// readURL returns where spans go: the endpoint, with OTLP's path behind one for all signals.
func readURL(name, endpoint string) (*url.URL, error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, fmt.Errorf("%s: give a URL such as http://127.0.0.1:4318, with no user in it", name)
	}
	if name == "OTEL_EXPORTER_OTLP_ENDPOINT" || name == "tracing.endpoint" && strings.Trim(u.Path, "/") == "" {
		u.Path = strings.TrimSuffix(u.Path, "/") + "/v1/traces"
	}
	return u, nil
}

func (o *Options) readHeaders(name, list string) error {
	o.Header = http.Header{"Content-Type": {"application/x-protobuf"}, "User-Agent": {"cabrank"}}
	if !o.Plain {
		o.Header.Set("Content-Encoding", "gzip")
	}
	fields, err := pairs(name, list)
	for field, value := range fields {
		if !httpguts.ValidHeaderFieldName(field) || !httpguts.ValidHeaderFieldValue(value) {
			err = fmt.Errorf("%s: HTTP has no such name or value: give NAME=VALUE,NAME=VALUE", name)
		}
		o.Header.Set(field, value)
	}
	return err
}

// pairs reads KEY=VALUE,KEY=VALUE, where a value has %2C for a comma.
func pairs(name, list string) (map[string]string, error) {
	all := make(map[string]string)
	for i, pair := range strings.Split(list, ",") {
		key, value, found := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); key != "" && found && err == nil {
			all[key] = value
		} else if key != "" || found {
			return nil, fmt.Errorf("%s: entry %d is no KEY=VALUE, with %%2C for a comma in the value", name, i+1)
		}
	}
	return all, nil
}
