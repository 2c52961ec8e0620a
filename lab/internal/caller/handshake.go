package caller

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"

	"google.golang.org/grpc/credentials"
)

// watched are credentials that keep why a handshake failed: grpc-go has it in a text
// alone, of a call.
type watched struct {
	credentials.TransportCredentials

	dialer *Dialer
}

// ClientHandshake is that of the credentials.
func (w watched) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		err = fmt.Errorf("TLS handshake: %w", err)
		w.dialer.last.Store(&err)
	}
	return conn, info, err
}

// Clone copies the credentials and watches the copy.
func (w watched) Clone() credentials.TransportCredentials {
	return watched{w.TransportCredentials.Clone(), w.dialer}
}

// hopeless reports whether the last connection failed for a reason that will be the same
// at the next attempt: one side does not speak TLS, or one does not trust the other.
func (d *Dialer) hopeless() bool {
	last := d.last.Load()
	if last == nil {
		return false
	}
	var untrusted *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(*last, &untrusted) || errors.As(*last, &plain) || errors.As(*last, &alert) || errors.Is(*last, io.EOF)
}

func secure(c credentials.TransportCredentials) bool { return c.Info().SecurityProtocol == "tls" }
