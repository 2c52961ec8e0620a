package relay

import (
	"context"
	"errors"
	"io"

	"github.com/cabrank/cabrank/internal/shard"
)

// errClear ends a caller's connection that began without TLS.
var errClear = errors.New("without TLS")

// clearAnswer is the answer to HTTP/1 without TLS on a port that requires TLS.
const clearAnswer = "HTTP/1.0 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\ncabrank: this port speaks TLS: use https\n"

// mustSecure reports whether the connection should have begun with TLS.
func (cc *callerConn) mustSecure() bool {
	set := cc.st.relay.settings()
	return set.TLS != nil && !set.ClearText && !cc.secure && cc.local == nil
}

// startTLS makes the TLS handshake with a guest, which is then a caller like any other, over
// HTTP/2 or HTTP/1. Until then it is an idle guest that may be evicted. The handshake has as
// much time as a preface.
func startTLS(g *Guest) {
	set := g.st.relay.settings()
	nc := shard.Secure(g.Conn, set.TLS)
	ctx, cancel := context.WithTimeout(context.Background(), set.Limits.Handshake)
	err := nc.HandshakeContext(ctx)
	cancel()
	g.st.do(func() {
		name := ""
		if err == nil {
			if identity := g.st.relay.settings().Identity; identity != nil {
				state := nc.ConnectionState()
				name, err = identity(&state)
			}
		}
		switch {
		case g.gone: // and closed
		case err != nil:
			g.st.handshakeFailed(err)
			g.end()
		default:
			g.unlink()
			g.st.admit(nc, g.source, name)
		}
	})
}

// handshakeFailed counts a failed handshake, and logs it unless the peer just left.
func (st *shardState) handshakeFailed(err error) {
	if errors.Is(err, io.EOF) {
		st.disconnects[disconnect{ofCaller, reasonTLS}]++
		return
	}
	st.noteEnded(disconnect{ofCaller, reasonTLS}, "a caller's TLS handshake failed", "error", err)
}
