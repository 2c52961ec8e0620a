package config

import (
	"fmt"
	"strings"
	"unicode"
)

// Auth says who may come, and do what: to sockets, or to all doors.
type Auth struct {
	Secret    string   `key:"secret" kind:"secret" arg:"FILE" default:"none" help:"file with the secret with which tokens are signed, never the secret itself; env:NAME: it is in that variable"`
	Key       string   `key:"key" kind:"source" arg:"FILE" default:"none" help:"file with the public keys of tokens, PEM or a JWK set; env:NAME: they are in that variable; https://...: a JWK set is there"`
	Audience  string   `key:"audience" kind:"line" arg:"NAME" default:"none" help:"audience that tokens must name (aud); none: tokens must name no audience"`
	Issuer    string   `key:"issuer" kind:"line" arg:"NAME" default:"none" help:"issuer that tokens must name (iss); none: any issuer"`
	Cookie    string   `key:"cookie" kind:"cookie" arg:"NAME" default:"none" help:"cookie in which a page of socket.origin brings its token"`
	Optional  bool     `key:"optional" default:"false" help:"whether callers without a token are let in, too"`
	Call      []string `key:"call" kind:"globs" arg:"GLOBS" default:"none" help:"URIs that callers without a claim call may call"`
	Publish   []string `key:"publish" kind:"globs" arg:"GLOBS" default:"none" help:"channels in which callers without a claim publish may publish"`
	Subscribe []string `key:"subscribe" kind:"globs" arg:"GLOBS" default:"none" help:"channels to which callers without a claim subscribe may subscribe"`
	Doors     string   `key:"doors" oneof:"sockets|all" default:"sockets" help:"who is asked: sockets, or all that can reach a worker"` // see AllDoors
}

// IsOn reports whether anybody is asked for a token.
func (a Auth) IsOn() bool { return a.Secret != "" || a.Key != "" }

// AllDoors reports whether calls by HTTP/2 are asked for a token, too.
func (a Auth) AllDoors() bool { return a.Doors == "all" }

// authRules see to it that what is meant to keep callers out does, and that a cookie counts
// for pages that are listed; and that nobody from elsewhere can publish without a token.
func (c *Config) authRules(refuse refuse) {
	a, push := c.Auth, c.Socket.Push
	refuse(a.Secret != "" && a.Key != "", "auth.secret", fmt.Sprintf("there is auth.key, too (%s)", c.origins["auth.key"]), "one of them")
	refuse(a.Cookie != "" && len(c.Socket.Origins) == 0, "auth.cookie", "browsers send it for any page, and no origin is listed", "none, or socket.origin beside it")
	refuse(push.On && c.Socket.PushToken == "" && !isOwnHost(push.Host), "socket.push",
		push.Addr()+" can be reached from elsewhere, and there is no socket.push_token", "an address such as 127.0.0.1:9001, or a token beside it")
	for _, part := range parts("").linesOf(&a, false) {
		if !a.IsOn() && (part.path != ".doors" || a.AllDoors()) {
			refuse(true, "auth"+part.path, "nobody is asked for a token", "its default, or auth.key or auth.secret beside it")
			return
		}
	}
}

func cleanGlob(glob string) (string, error) {
	odd := glob == "" || len(glob) > 1024 || strings.ContainsFunc(glob, unicode.IsControl)
	return glob, wrong(quote(glob), flaw{odd, "is not a glob"})
}
