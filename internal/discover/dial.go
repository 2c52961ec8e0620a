package discover

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
)

// secureNetwork is the network of endpoints that speak TLS. Their addresses are
// HOST:PORT, or IP:PORT/HOST where HOST was looked up.
const secureNetwork = "tls"

// Dial connects to an endpoint that speaks TLS. The endpoint has to show a certificate
// that config accepts, and to agree on HTTP/2. An error is one line.
func Dial(ctx context.Context, network, address string, config func(host string) *tls.Config) (net.Conn, error) {
	if network != secureNetwork {
		return nil, net.UnknownNetworkError(network)
	}
	at, host, found := strings.Cut(address, "/")
	if !found {
		var err error
		if host, _, err = net.SplitHostPort(at); err != nil {
			return nil, err
		}
	}
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(nc, config(host))
	if err := shake(ctx, secure); err != nil {
		_ = nc.Close() // the first error counts
		return nil, err
	}
	return secure, nil
}

var errNoHTTP2 = errors.New("it speaks TLS, and does not agree on HTTP/2 (ALPN h2)")

func shake(ctx context.Context, nc *tls.Conn) error {
	err := nc.HandshakeContext(ctx)
	_, isClear := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case err == nil && nc.ConnectionState().NegotiatedProtocol == "h2":
		return nil
	case err == nil || strings.HasSuffix(err.Error(), "tls: no application protocol"):
		return errNoHTTP2
	case isClear:
		return errors.New("it does not speak TLS: leave tls: out where it is named")
	}
	return fmt.Errorf("TLS handshake: %s", strings.TrimPrefix(err.Error(), "tls: "))
}
