package client

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"
)

// leastTokenPause is between two attempts to get a new token.
const leastTokenPause = time.Second

// header returns what a handshake has.
func (o *Options) header(ctx context.Context) (header http.Header, err error) {
	if o.Header != nil {
		if header, err = o.Header(ctx); err != nil {
			return nil, err
		}
	}
	if o.Token == nil {
		return header, nil
	}
	token, err := o.Token(ctx)
	if err != nil {
		return nil, err
	}
	if header = maps.Clone(header); header == nil {
		header = http.Header{}
	}
	header.Set("Authorization", "Bearer "+token)
	return header, nil
}

// renew shows a new token when four fifths of the time for the old one are over, and
// again if the server does not take it, until the connection ends.
func (l *link) renew() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with renew
		select {
		case <-l.done:
			cancel()
		case <-ctx.Done():
		}
	}()
	for left := l.ttl; l.pause(max(left*4/5, leastTokenPause), 1); {
		next, err := l.showToken(ctx)
		switch {
		case err != nil:
			left /= 5
		case next == 0:
			return // this one has no end
		default:
			left = next
		}
	}
}

// showToken asks for a token and shows it. It returns how long it counts.
func (l *link) showToken(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, l.options.CallTimeout)
	defer cancel()
	token, err := l.options.Token(ctx)
	if err != nil {
		return 0, err
	}
	w := l.push(request{kind: kindAuth, token: token})
	select {
	case r := <-w.reply:
		return r.ttl, r.err
	case <-ctx.Done():
		l.forget(w, ctx.Err())
		return 0, errors.New("not acknowledged")
	}
}
