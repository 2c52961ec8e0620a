package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
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

// authKey are the keys of which one is needed for all others.
const authKey = "socket.auth_key or socket.auth_secret"

func socketAuthKeys() []Key {
	globs := list{cleanGlob, "globs, with {user} for who it is", 1000}
	return []Key{
		{Name: "socket.auth_secret", Arg: "FILE", Default: none,
			Applies: ByUpgrade, Secret: true, Help: "file with the secret with which tokens are signed, never the secret itself; env:NAME: it is in that variable",
			kind: secretText{"a file, or env:NAME"}, field: func(c *Config) any { return &c.Socket.Auth.Secret }},
		{Name: "socket.auth_key", Arg: "FILE", Default: none,
			Applies: ByUpgrade, Help: "file with the public keys of tokens, PEM or a JWK set; env:NAME: they are in that variable; https://...: a JWK set is there",
			kind: optionalText{cleanSource, "a file, env:NAME or https://..."}, field: func(c *Config) any { return &c.Socket.Auth.Key }},
		{Name: "socket.auth_audience", Arg: "NAME", Default: none,
			Applies: ByUpgrade, Help: "what tokens have to be for (aud); none: those that are for nobody in particular",
			kind: optionalText{cleanLine, "a text"}, field: func(c *Config) any { return &c.Socket.Auth.Audience }},
		{Name: "socket.auth_issuer", Arg: "NAME", Default: none,
			Applies: ByUpgrade, Help: "who has to have made tokens (iss); none: anybody who has the key",
			kind: optionalText{cleanLine, "a text"}, field: func(c *Config) any { return &c.Socket.Auth.Issuer }},
		{Name: "socket.auth_cookie", Arg: "NAME", Default: none,
			Applies: ByUpgrade, Help: "cookie that has the token of a page of socket.origin",
			kind: optionalText{cleanCookie, "a name of a cookie"}, field: func(c *Config) any { return &c.Socket.Auth.Cookie }},
		{Name: "socket.auth_optional", Default: "false",
			Applies: ByUpgrade, Help: "whether callers without a token are let in, too",
			kind: toggle{}, field: func(c *Config) any { return &c.Socket.Auth.Optional }},
		{Name: "socket.auth_call", Arg: "GLOBS", Default: none,
			Applies: ByUpgrade, Help: "URIs that may be called by who has no claim call",
			kind: globs, field: func(c *Config) any { return &c.Socket.Auth.Call }},
		{Name: "socket.auth_publish", Arg: "GLOBS", Default: none,
			Applies: ByUpgrade, Help: "channels in which may publish who has no claim publish",
			kind: globs, field: func(c *Config) any { return &c.Socket.Auth.Publish }},
		{Name: "socket.auth_subscribe", Arg: "GLOBS", Default: none,
			Applies: ByUpgrade, Help: "channels to which may subscribe who has no claim subscribe",
			kind: globs, field: func(c *Config) any { return &c.Socket.Auth.Subscribe }},
	}
}

// The words of auth.doors.
const (
	socketDoors = "sockets"
	allDoors    = "all"
)

func doorsKey() Key {
	return Key{
		Name: "auth.doors", Default: socketDoors,
		Applies: ByUpgrade, Help: "who is asked for a token, by the keys and rules of socket.auth_...: sockets, or all that can reach a worker",
		kind: oneOf{words: []string{socketDoors, allDoors}}, field: func(c *Config) any { return &c.Socket.Auth.Doors },
	}
}

// AllDoors reports whether calls by HTTP/2 are asked for a token, too.
func (a SocketAuth) AllDoors() bool { return a.Doors == allDoors }

// authFits sees to it that what is meant to keep callers out does.
func (c *Config) authFits() *Fault {
	auth := c.Socket.Auth
	if auth.Secret != "" && auth.Key != "" {
		return c.faultAt("socket.auth_secret", "there is socket.auth_key, too ("+c.origins["socket.auth_key"].String()+")", "one of them")
	}
	for _, needs := range []struct {
		key   string
		isSet bool
	}{
		{"auth.doors", auth.AllDoors()},
		{"socket.auth_audience", auth.Audience != ""},
		{"socket.auth_issuer", auth.Issuer != ""},
		{"socket.auth_cookie", auth.Cookie != ""},
		{"socket.auth_optional", auth.Optional},
		{"socket.auth_call", len(auth.Call) > 0},
		{"socket.auth_publish", len(auth.Publish) > 0},
		{"socket.auth_subscribe", len(auth.Subscribe) > 0},
	} {
		if needs.isSet && !auth.IsOn() {
			return c.faultAt(needs.key, "nobody is asked for a token", "its default, or "+authKey+" beside it")
		}
	}
	if auth.Cookie != "" && len(c.Socket.Origins) == 0 {
		return c.faultAt("socket.auth_cookie", "browsers send it for any page, and no origin is listed", none+", or socket.origin beside it")
	}
	return nil
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
