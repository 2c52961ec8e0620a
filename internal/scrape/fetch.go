package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"
)

// mostPageBytes is how long a page may be, unpacked.
const mostPageBytes = 16 << 20

// accept asks for what says most: native histograms are in protobuf alone, exemplars in
// OpenMetrics, too.
const accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.9," +
	"application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"

// Why there is no page.
var (
	errAbsent = errors.New("nobody listens")
	errLong   = fmt.Errorf("it is longer than %d MiB", mostPageBytes>>20)
)

// statusError is an answer without a page.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }

// Address is where a page is.
type Address struct {
	Network string // "tcp" or "unix"
	Address string // as net.Dial takes it
	Path    string // of the URL
}

// fetcher gets pages. No proxy of the environment is asked, and no answer of another
// place is followed.
type fetcher struct{ client http.Client }

// addressKey has the Address of a request in its context.
type addressKey struct{}

func newFetcher() *fetcher {
	var dialer net.Dialer
	return &fetcher{http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				at, _ := ctx.Value(addressKey{}).(Address)
				return dialer.DialContext(ctx, at.Network, at.Address)
			},
			DisableKeepAlives:      true, // a worker may have one thread for its page
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// fetch returns a page with its content type. The buffer is used for it if it is large
// enough.
func (f *fetcher) fetch(ctx context.Context, at Address, buffer []byte) (page []byte, kind string, err error) {
	ctx = context.WithValue(ctx, addressKey{}, at)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://worker"+at.Path, http.NoBody)
	if err != nil {
		return buffer, "", err
	}
	r.Header.Set("Accept", accept)
	if deadline, ok := ctx.Deadline(); ok {
		r.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", fmt.Sprint(time.Until(deadline).Seconds()))
	}
	response, err := f.client.Do(r)
	if err != nil {
		return buffer, "", absentOr(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return buffer, "", statusError(response.StatusCode)
	}
	page, err = readAll(response.Body, buffer)
	kind, _, _ = strings.Cut(response.Header.Get("Content-Type"), ";")
	return page, strings.TrimSpace(kind), err
}

// absentOr tells a place where nobody listens from other faults.
func absentOr(err error) error {
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ENOENT) {
		return errAbsent
	}
	return err
}

// readAll reads to the end, but no more than a page may have.
func readAll(from io.Reader, buffer []byte) ([]byte, error) {
	buffer = buffer[:0]
	for {
		if len(buffer) == cap(buffer) {
			buffer = append(buffer, 0)[:len(buffer)]
		}
		n, err := from.Read(buffer[len(buffer):min(cap(buffer), mostPageBytes+1)])
		buffer = buffer[:len(buffer)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buffer, nil
		case err != nil:
			return buffer, err
		case len(buffer) > mostPageBytes:
			return buffer, errLong
		}
	}
}
