package config

import (
	"fmt"
	"strings"
	"testing"
)

// Proxies are networks, or addresses alone; what is neither is one line.
func TestProxiesAreRead(t *testing.T) {
	file := "proxies: [10.1.2.3/8, 192.0.2.1, '2001:db8::1/32', '::ffff:10.0.0.0/104', '::ffff:192.0.2.2', '::1']"
	c := mustLoad(t, sources(map[string]string{"cabrank.yml": file}))
	const want = "[10.0.0.0/8 192.0.2.1/32 2001:db8::/32 10.0.0.0/8 192.0.2.2/32 ::1/128]"
	if got := fmt.Sprint(c.Proxies); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, text := range []string{"10.0.0.0/33", "10.0.0/8", "nginx", "10.0.0.1:80", "''"} {
		faults := faultsOf(t, sources(map[string]string{"cabrank.yml": "proxies: [10.0.0.0/8, " + text + "]"}))
		name := strings.Trim(text, "'")
		if got := strings.Join(faults, "\n"); !strings.HasPrefix(got, `cabrank.yml:1: proxies: "`+name+`" is neither an address nor a network; allowed: addresses`) || len(faults) != 1 {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// All doors need keys, and then their keys are not idle without sockets.
func TestDoorsNeedKeys(t *testing.T) {
	for text, want := range map[string]string{
		"auth: {doors: all}":        "cabrank.yml:1: auth.doors: nobody is asked for a token; allowed: its default, or auth.key or auth.secret beside it",
		"auth: {audience: a}":       "cabrank.yml:1: auth.audience: nobody is asked for a token; allowed: its default, or auth.key or auth.secret beside it",
		"auth: {key: a, secret: b}": "cabrank.yml:1: auth.secret: there is auth.key, too (cabrank.yml:1); allowed: one of them",
		"auth: {key: a, cookie: b}": "cabrank.yml:1: auth.cookie: browsers send it for any page, and no origin is listed; allowed: none, or socket.origin beside it",
		"socket: {auth_key: a}":     "cabrank.yml:1: socket.auth_key: now auth: {key: ...}",
		"auth: {doors: gates}":      `cabrank.yml:1: auth.doors: "gates" is unknown; allowed: sockets, all`,
	} {
		if got := strings.Join(faultsOf(t, sources(map[string]string{"cabrank.yml": text})), "\n"); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if c := mustLoad(t, sources(map[string]string{"cabrank.yml": "auth: {doors: all, key: keys.pem, call: [/a.B/*]}"})); !c.Auth.AllDoors() || len(c.Warnings) > 0 {
		t.Errorf("%+v, warnings %q", c.Auth, c.Warnings)
	}
	if c := mustLoad(t, sources(map[string]string{"cabrank.yml": "auth: {doors: sockets, key: keys.pem, call: [/a.B/*]}"})); c.Auth.AllDoors() || len(c.Warnings) != 1 {
		t.Errorf("%+v, warnings %q", c.Auth, c.Warnings)
	}
}
