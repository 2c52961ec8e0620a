package relay

import (
	"context"
	"errors"
	"io"

	"github.com/cabrank/cabrank/internal/shard"
)

// errClear is why a caller's connection ends that began without TLS.
var errClear = errors.New("without TLS")

// clearAnswer is for those who speak HTTP/1 where TLS is asked for.
const clearAnswer = "HTTP/1.0 400 Bad Request\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\ncabrank: this port speaks TLS: use https\n"

// mustSecure reports whether the connection has to begin with TLS, and has not.
func (cc *callerConn) mustSecure() bool {
	set := cc.st.relay.settings()
	return set.TLS != nil && !set.ClearText && !cc.secure && cc.local == nil
}

// startTLS shakes hands with a guest, who is a caller then like any other: over HTTP/2 or
// HTTP/1, as its first bytes say. Until then it is one of the connections that make room for
// others; it has as long as a preface has.
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

// handshakeFailed counts a handshake, and says what was wrong with one of those whose peer
// was there to the end.
func (st *shardState) handshakeFailed(err error) {
	if errors.Is(err, io.EOF) {
		st.disconnects[disconnect{ofCaller, reasonTLS}]++
		return
	}
	st.noteRejected(reasonTLS, "a caller's TLS handshake failed", "error", err)
}

// noteRejected counts a caller's connection, and says so in the log, once a minute for a reason.
func (st *shardState) noteRejected(reason, line string, told ...any) {
	end := disconnect{ofCaller, reason}
	st.disconnects[end]++
	if unsaid, say := st.relay.mayLog(end, st.Now()); say {
		// Not under the shard's lock: whoever reads the log may be slow.
		go st.relay.settings().Log.Warn(line, append(told, "unsaid", unsaid)...) //nolint:sloglint // one of a few; it ends with the line
	}
}
