//go:build real || soak

package auth_test

import (
	"slices"
	"testing"

	"github.com/cabrank/cabrank/test/real/harness"
)

// On the port of the calls it is the same: who shows a good token comes in, and neither
// the log nor a page has it.
func TestTokensOnOnePort(t *testing.T) {
	config := file(t, "auth: {secret: env:THE_SECRET, cookie: session}\nsocket:\n  path: [/ws]\n  origin: [none]\n")
	args := slices.Concat([]string{"--config", config, "--log-level", "debug", "--workers", "1", "--transport", "unix", "--"}, harness.FaultWorker(t))
	c := harness.StartCabrankEnv(t, []string{"THE_SECRET=" + secret}, args...)
	c.WaitReady(harness.Patience)
	good := tokenFor(nil)
	if s, _, said := knock(t, c.Addr, "?token="+good, nil); s == nil {
		t.Errorf("a good token: %s", said)
	} else {
		s.send(subscribe, `{"channel":"c"}`)
		s.want(`"code":403`)
		s.ws.Close()
	}
	for _, query := range []string{"", "?token=" + good + "x"} {
		if _, status, said := knock(t, c.Addr, query, nil); status != 401 {
			t.Errorf("%s: %d %s", query, status, said)
		}
	}
	for _, path := range []string{"/ws?token=" + good, "/other?token=" + good} {
		raw(t, c.Addr, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n")
	}
	wantNoSecret(t, c, c.Stop, good)
}
