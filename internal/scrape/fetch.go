package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"
)

// smallPage is how long a page may be that needs no place among the large ones, and up
// to where a buffer is kept for the next page.
const smallPage = 256 << 10

// accept asks for what says most: native histograms are in protobuf alone, exemplars in
// OpenMetrics, too.
const accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.9," +
	"application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"

// Why there is no page.
var (
	errAbsent = errors.New("nobody listens")
	errLong   = errors.New("it is longer")
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

// room is what a page may take.
type room struct {
	buffer []byte       // is used if it is large enough
	most   int          // bytes
	large  func() error // waits until it may take more than smallPage
}

// fetch returns a page with its content type, of one that is too long what fits.
func (f *fetcher) fetch(ctx context.Context, at Address, room room) (page []byte, kind string, err error) {
	ctx = context.WithValue(ctx, addressKey{}, at)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://worker"+at.Path, http.NoBody)
	if err != nil {
		return room.buffer, "", err
	}
	r.Header.Set("Accept", accept)
	if deadline, ok := ctx.Deadline(); ok {
		r.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", fmt.Sprint(time.Until(deadline).Seconds()))
	}
	response, err := f.client.Do(r)
	if err != nil {
		return room.buffer, "", absentOr(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return room.buffer, "", statusError(response.StatusCode)
	}
	page, err = room.readAll(response.Body)
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
func (r room) readAll(from io.Reader) ([]byte, error) {
	buffer, small := r.buffer[:0], true
	for {
		if len(buffer) == cap(buffer) {
			if small && len(buffer) > smallPage/2 {
				if err := r.large(); err != nil {
					return buffer, err
				}
				small = false
			}
			buffer = slices.Grow(buffer, min(max(len(buffer), 4<<10), r.most+1-len(buffer)))
		}
		n, err := from.Read(buffer[len(buffer):min(cap(buffer), r.most+1)])
		buffer = buffer[:len(buffer)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buffer, nil
		case err != nil:
			return buffer, err
		case len(buffer) > r.most:
			return buffer, fmt.Errorf("%w than %.3g MiB", errLong, float64(r.most)/(1<<20))
		}
	}
}
