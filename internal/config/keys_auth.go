package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// SocketAuth says who may come, and do what: to sockets, or to all doors.
type SocketAuth struct {
	Secret   string // file or env:NAME; empty: none
	Key      string // file, env:NAME or URL; empty: none
	Audience string
	Issuer   string
	Cookie   string
	Optional bool
	Doors    string // sockets or all, see AllDoors

	// What who has no such claim may do.
	Call, Publish, Subscribe []string
}

// IsOn reports whether anybody is asked for a token.
func (a SocketAuth) IsOn() bool { return a.Secret != "" || a.Key != "" }

// The words of auth's doors.
const (
	socketDoors = "sockets"
	allDoors    = "all"
)

func authKey() Key {
	return Key{
		Name: "auth", Default: none,
		Applies: ByUpgrade, Help: "by which tokens callers show who they are, and what each may do (docs/socket-auth.md); none: nobody is asked",
		kind: authRules(), field: func(c *Config) any { return &c.Socket.Auth },
	}
}

func authRules() record[SocketAuth] {
	globs := list{cleanGlob, "globs, with {user} for who it is", 1000}
	return record[SocketAuth]{
		form: "{key: FILE, ...}",
		table: []part[SocketAuth]{
			{"secret", none, "file with the secret with which tokens are signed, never the secret itself; env:NAME: it is in that variable", secretText{"a file, or env:NAME"},
				func(a *SocketAuth) any { return &a.Secret }},
			{"key", none, "file with the public keys of tokens, PEM or a JWK set; env:NAME: they are in that variable; https://...: a JWK set is there", optionalText{cleanSource, "a file, env:NAME or https://..."},
				func(a *SocketAuth) any { return &a.Key }},
			{"audience", none, "what tokens have to be for (aud); none: those that are for nobody in particular", optionalText{cleanLine, "a text"},
				func(a *SocketAuth) any { return &a.Audience }},
			{"issuer", none, "who has to have made tokens (iss); none: anybody who has the key", optionalText{cleanLine, "a text"},
				func(a *SocketAuth) any { return &a.Issuer }},
			{"cookie", none, "cookie that has the token of a page of socket.origin", optionalText{cleanCookie, "a name of a cookie"},
				func(a *SocketAuth) any { return &a.Cookie }},
			{"optional", "false", "whether callers without a token are let in, too", toggle{},
				func(a *SocketAuth) any { return &a.Optional }},
			{"call", none, "URIs that callers without a claim call may call", globs,
				func(a *SocketAuth) any { return &a.Call }},
			{"publish", none, "channels in which callers without a claim publish may publish", globs,
				func(a *SocketAuth) any { return &a.Publish }},
			{"subscribe", none, "channels to which callers without a claim subscribe may subscribe", globs,
				func(a *SocketAuth) any { return &a.Subscribe }},
			{"doors", socketDoors, "who is asked: sockets, or all that can reach a worker", oneOf{words: []string{socketDoors, allDoors}},
				func(a *SocketAuth) any { return &a.Doors }},
		},
		check: func(a *SocketAuth, _ *yaml.Node, at *outline) { checkAuth(a, at) },
	}
}

// checkAuth sees to it that what is meant to keep callers out does.
func checkAuth(a *SocketAuth, at *outline) {
	if a.Secret != "" && a.Key != "" {
		at.faultAt("auth.secret", fmt.Sprintf("there is auth.key, too (%s)", at.places["auth.key"]), "one of them")
	}
	for _, part := range authRules().table {
		path := "auth." + part.name
		if at.written(path) && part.kind.show(part.field(a)) != part.kind.show(part.field(new(SocketAuth))) && !a.IsOn() && !(part.name == "doors" && !a.AllDoors()) {
			at.faultAt(path, "nobody is asked for a token", "its default, or auth.key or auth.secret beside it")
			return
		}
	}
}

// AllDoors reports whether calls by HTTP/2 are asked for a token, too.
func (a SocketAuth) AllDoors() bool { return a.Doors == allDoors }

// cookieHasOrigins sees to it that a cookie counts for pages that are listed.
func (c *Config) cookieHasOrigins() *Fault {
	if c.Socket.Auth.Cookie == "" || len(c.Socket.Origins) > 0 {
		return nil
	}
	return c.faultAt("auth.cookie", "browsers send it for any page, and no origin is listed", none+", or socket.origin beside it")
}

// optionalText is the kind of *string fields that may be none.
type optionalText struct {
	clean func(string) (string, error)
	legal string
}

func (k optionalText) set(field any, raw string) error {
	if raw == none {
		*field.(*string) = ""
		return nil
	}
	value, err := k.clean(raw)
	if err != nil {
		return err
	}
	*field.(*string) = value
	return nil
}

func (k optionalText) show(field any) string {
	if value := *field.(*string); value != "" {
		return value
	}
	return none
}

func (k optionalText) allowed() string { return k.legal + ", or " + none }

// cleanSource accepts where a key is. What looks like a key itself is not repeated.
func cleanSource(source string) (string, error) {
	if strings.ContainsFunc(source, unicode.IsControl) || strings.HasPrefix(source, "-") || strings.HasPrefix(source, "{") {
		return "", errors.New("it is not the name of a file")
	}
	return source, nil
}

func cleanLine(text string) (string, error) {
	if text == "" || strings.ContainsFunc(text, unicode.IsControl) {
		return "", fmt.Errorf("%s is not a line of text", quote(text))
	}
	return text, nil
}

// cleanCookie accepts a token of RFC 6265, section 4.1.1.
func cleanCookie(name string) (string, error) {
	isBad := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`()<>@,;:\"/[]?={}`, r) }
	if name == "" || strings.ContainsFunc(name, isBad) {
		return "", fmt.Errorf("%s is not a name of a cookie", quote(name))
	}
	return name, nil
}

func cleanGlob(glob string) (string, error) {
	if glob == "" || len(glob) > 1024 || strings.ContainsFunc(glob, unicode.IsControl) {
		return "", fmt.Errorf("%s is not a glob", quote(glob))
	}
	return glob, nil
}
