package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

const (
	// fetchTime bounds one fetch of the keys, and so how long a handshake waits for it.
	fetchTime = 5 * time.Second

	// keysAge is how old keys may be; those that are withdrawn count no longer.
	keysAge = 10 * time.Minute

	// fetchPause is between two fetches at least, whatever tokens come.
	fetchPause = 10 * time.Second
)

// remote is keys at a URL. They are fetched when a token needs it: if they are old, or if
// it names a key that is not among them.
//
// Concurrency: find may be called from anywhere, and waits for fetchTime at most.
type remote struct {
	url    string
	client *http.Client
	log    *slog.Logger
	change func() // is told of other keys
	known  atomic.Pointer[knownKeys]

	turn  chan struct{} // has one element while somebody fetches
	tried time.Time     // by who has the turn
	left  leftOut       // by who has the turn: told already
}

type knownKeys struct {
	set keySet
	at  time.Time
}

func newRemote(address string, log *slog.Logger, change func()) *remote {
	return &remote{url: address, log: log, change: change, turn: make(chan struct{}, 1), client: &http.Client{
		Timeout: fetchTime,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it is elsewhere: redirects are not followed")
		},
	}}
}

// open fetches the keys for the first time. Errors: one line, if there are none.
func (r *remote) open() error {
	if err := checkURL(r.url); err != nil {
		return err
	}
	set, err := r.fetch()
	if err != nil {
		return err
	}
	r.tried = time.Now()
	r.known.Store(&knownKeys{set, r.tried})
	return nil
}

// checkURL wants keys that nobody on the way can change.
func checkURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.User != nil {
		return errors.New("it is no URL of keys")
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()) {
		return nil
	}
	return errors.New("keys come by https, or by http from this host alone")
}

// find returns the keys of an id.
func (r *remote) find(id string) keySet {
	known := r.known.Load()
	found := known.set.find(id)
	switch {
	case len(found) == 0:
		r.turn <- struct{}{} // who comes meanwhile waits for the same answer
	case time.Since(known.at) <= keysAge:
		return found
	default:
		select {
		case r.turn <- struct{}{}:
		default: // one asks, others go on with what there is
			return found
		}
	}
	r.refresh()
	<-r.turn
	return r.known.Load().set.find(id)
}

// refresh fetches the keys, unless that was tried a moment ago. If it fails the old ones
// count on. The caller has the turn.
func (r *remote) refresh() {
	if time.Since(r.tried) < fetchPause {
		return
	}
	set, err := r.fetch()
	r.tried = time.Now()
	if err != nil {
		r.log.Warn("cannot fetch token keys; keeping the old ones", "url", r.url, "err", err)
		return
	}
	r.known.Store(&knownKeys{set, r.tried})
	r.change()
}

// fetch returns the keys that are there now. The caller has the turn, or is the first.
func (r *remote) fetch() (keySet, error) {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, r.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := r.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", response.Status)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, mostKeyBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > mostKeyBytes {
		return nil, errors.New("the answer is longer than 1 MiB")
	}
	set, left, err := parseJWKS(content)
	if err != nil {
		return nil, err
	}
	r.left = left.tell(r.log, r.left)
	return set, nil
}
