package config

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"unicode"
)

// Socket is callers over WebSocket: those of cabrank socket serve, and of cabrank run
// on the port of its calls.
type Socket struct {
	Paths       []string // empty: no sockets in cabrank run
	Origins     []string // "none" is who sends none; empty: the host itself
	Redis       Redis
	ReadLimit   Size
	CallCap     int // 0: any number
	MessageRate int // of a socket, a second; 0: any
	Auth        SocketAuth
	Methods     []string // of workers that may be called: patterns as in methods; empty: none
	Descriptors []string // files that describe them; empty: workers do by reflection
	Push        string   // HOST:PORT, or off
	PushToken   string   // file or env:NAME; empty: none is needed
}

// socketSection is the part of the names of its keys before the dot. What follows is,
// with dashes, also the name of the flag of cabrank socket serve.
const socketSection = "socket"

// ownHost is the word for the origin that needs no list.
const ownHost = "host"

func socketKeys() []Key {
	return append([]Key{
		{Name: "socket.path", Flag: "socket-path", Arg: "PATH", Default: none,
			Applies: ByUpgrade, Help: "paths for callers over WebSocket, on the port of the calls; none: there are no sockets",
			kind: list{cleanPath, "paths that begin with /", 100}, field: func(c *Config) any { return &c.Socket.Paths }},
		{Name: "socket.origin", Arg: "ORIGIN", Default: ownHost,
			Applies: ByReload, Help: "origins of pages that may connect (host: that of the port itself); none is callers that are no page",
			kind: originList{list{cleanOrigin, "origins such as https://shop.example, or none", 100}}, field: func(c *Config) any { return &c.Socket.Origins }},
		{Name: "socket.redis", Env: "CABRANK_REDIS", Arg: "ADDRESS", Default: none,
			Applies: ByUpgrade, Secret: true, Help: "Redis or Valkey, Cluster or Sentinels, where callees and other servers are: HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DB, or rediss:// with TLS (docs/socket.md); none: all is in one process",
			kind: redisAddresses{}, field: func(c *Config) any { return &c.Socket.Redis }},
		{Name: "socket.read_limit", Arg: "BYTES", Default: "1MiB",
			Applies: ByUpgrade, Help: "most bytes of a message that comes in",
			kind: byteSize{min: 1, max: GiB}, field: func(c *Config) any { return &c.Socket.ReadLimit }},
		{Name: "socket.call_cap", Arg: "N", Default: "0",
			Applies: ByUpgrade, Help: "most calls that wait for one URI (0: any number)",
			kind: wholeNumber{0, 1_000_000_000}, field: func(c *Config) any { return &c.Socket.CallCap }},
		{Name: "socket.message_rate", Arg: "N", Default: "0",
			Applies: ByUpgrade, Help: "messages of a socket in a second, and as many at once after a pause; what is above is read later (0: any number)",
			kind: wholeNumber{0, 1_000_000}, field: func(c *Config) any { return &c.Socket.MessageRate }},
		{Name: "socket.push", Arg: "HOST:PORT", Default: off,
			Applies: ByUpgrade, Help: "where the application publishes to sockets and ends them, by HTTP and gRPC, or off; beyond loopback it needs a token",
			kind: freeText{cleanPush, "HOST:PORT, or off"}, field: func(c *Config) any { return &c.Socket.Push }},
		{Name: "socket.push_token", Arg: "FILE", Default: none,
			Applies: ByUpgrade, Secret: true, Help: "file with the token that requests of the application have to bring, at least 16 bytes; env:NAME: it is in that variable",
			kind: secretText{"a file, or env:NAME"}, field: func(c *Config) any { return &c.Socket.PushToken }},
	}, socketWorkerKeys()...)
}

// socketWorkerKeys are those of gRPC methods, of which cabrank socket serve has none.
func socketWorkerKeys() []Key {
	return []Key{
		{Name: "socket.methods", Arg: "METHOD", Default: none,
			Applies: ByUpgrade, Help: "gRPC methods of the workers that callers over WebSocket may call",
			kind: list{cleanPattern, patternLegal, maxMethods}, field: func(c *Config) any { return &c.Socket.Methods }},
		{Name: "socket.descriptors", Arg: "FILE", Default: none,
			Applies: ByUpgrade, Help: "files that describe these methods, of protoc --descriptor_set_out; none: workers do, by reflection",
			kind: list{cleanLine, "names of files", 100}, field: func(c *Config) any { return &c.Socket.Descriptors }},
	}
}

// SocketFlags are the flags of cabrank socket serve that are keys, or parts of auth, too,
// with the same meanings and ranges.
func SocketFlags() []Flag {
	var flags []Flag
	for _, key := range sectionKeys(socketSection) {
		if !isOfWorkers(key) {
			key.Flag = strings.ReplaceAll(last(key.Name), "_", "-")
			flags = append(flags, newFlag(key))
		}
	}
	return append(flags, authFlags()...)
}

// authFlags are those of the parts of auth, but for its doors: there are only sockets.
func authFlags() []Flag {
	var flags []Flag
	for _, part := range authRules().table {
		if part.name != "doors" {
			flags = append(flags, newFlag(Key{
				Name: "auth." + part.name, Flag: "auth-" + part.name, Arg: authArguments()[part.name], Env: authKey().Env, Default: part.standard, Help: part.help,
				kind: part.kind, field: func(c *Config) any { return part.field(&c.Socket.Auth) },
			}))
		}
	}
	return flags
}

// authArguments names the arguments of these flags; that which has none is a switch.
func authArguments() map[string]string {
	return map[string]string{
		"secret": "FILE", "key": "FILE", "audience": "NAME", "issuer": "NAME", "cookie": "NAME", "call": "GLOBS", "publish": "GLOBS", "subscribe": "GLOBS",
	}
}

func isOfWorkers(key Key) bool {
	return slices.ContainsFunc(socketWorkerKeys(), func(own Key) bool { return own.Name == key.Name })
}

// LoadSocket makes the configuration of cabrank socket serve, which runs no workers: of
// sockets what its flags and variables say, else the defaults. Errors: Faults.
func LoadSocket(given map[string]string, sources Sources) (*Config, error) {
	environ := parseEnviron(sources.Environ)
	config := &Config{origins: map[string]Origin{}}
	config.setDefaults(ownKeys(), sources.machine())
	config.Workers.MinReady = 0 // of none
	keys := sectionKeys(socketSection)
	for _, key := range Keys() {
		if key.Name == "control" || key.Name == "auth" {
			keys = append(keys, key)
		}
	}
	faults := config.apply(variableSettings(keys, environ))
	for _, flag := range SocketFlags() {
		if argument, isGiven := given[flag.Name]; isGiven {
			faults = append(faults, config.apply([]setting{flag.setting(argument)})...)
		}
	}
	if len(faults) == 0 {
		at := &outline{key: "auth", places: config.origins}
		checkAuth(&config.Socket.Auth, at)
		faults = at.faults
	}
	for _, rule := range []func() *Fault{config.cookieHasOrigins, config.pushIsGuarded} {
		if fault := rule(); fault != nil && len(faults) == 0 {
			faults = append(faults, *fault)
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	config.Warnings = UnknownVariables(sources.Environ)
	return config, nil
}

// sectionKeys returns the keys of a section, in the order of the table.
func sectionKeys(section string) (keys []Key) {
	for _, key := range Keys() {
		if key.section() == section {
			keys = append(keys, key)
		}
	}
	return keys
}

// socketsOff warns of keys of sockets where there are none.
func (c *Config) socketsOff() (idle []idleSetting) {
	for _, key := range sectionKeys(socketSection) {
		if key.Name != "socket.path" && key.Name != "socket.redis" { // the variable is also there for other commands
			idle = append(idle, idleSetting{len(c.Socket.Paths) == 0, key.Name, "there are no sockets, socket.path is none", "socket.path"})
		}
	}
	idle = append(idle, idleSetting{len(c.Socket.Paths) == 0 && !c.Socket.Auth.AllDoors(), "auth", "there are no sockets, socket.path is none", "socket.path"})
	if len(c.Socket.Paths) > 0 {
		idle = append(idle, idleSetting{len(c.Socket.Methods) == 0, "socket.descriptors", "no method may be called, socket.methods is none", "socket.methods"})
	}
	return idle
}

// pushIsGuarded sees to it that nobody from elsewhere can publish without a token.
func (c *Config) pushIsGuarded() *Fault {
	if c.Socket.Push == off || c.Socket.PushToken != "" {
		return nil
	}
	host, _, _ := splitHostPort(c.Socket.Push) // cleanPush has let it through
	if isOwnHost(host) {
		return nil
	}
	return c.faultAt("socket.push", c.Socket.Push+" can be reached from elsewhere, and there is no socket.push_token",
		"an address such as 127.0.0.1:9001, or a token beside it")
}

func isOwnHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// openCalls warns of a port of which sockets alone are asked for a token.
func (c *Config) openCalls() []string {
	if len(c.Socket.Paths) == 0 || !c.Socket.Auth.IsOn() || c.Socket.Auth.AllDoors() || isOwnHost(c.Listen.Host) {
		return nil
	}
	return []string{fmt.Sprintf("%s: auth is for sockets alone: calls over gRPC at %s need no token", c.origins["auth"], c.Listen.Addr())}
}

// cleanPush accepts where applications come in.
func cleanPush(address string) (string, error) {
	if address == off {
		return address, nil
	}
	_, _, err := splitHostPort(address)
	return address, err
}

// originList is the kind of the origins: its empty list has a word of its own, since
// none is an origin.
type originList struct{ list }

func (k originList) set(field any, raw string) error {
	if strings.TrimSpace(raw) == ownHost {
		return k.setItems(field, nil)
	}
	return k.setItems(field, strings.Split(raw, ","))
}

func (k originList) show(field any) string {
	if len(*field.(*[]string)) == 0 {
		return ownHost
	}
	return k.list.show(field)
}

func (k originList) allowed() string {
	return fmt.Sprintf("%s, at most %d, or %s: that of the port", k.legal, k.max, ownHost)
}

// cleanOrigin accepts what a browser sends: a scheme and a host, maybe with a port.
func cleanOrigin(origin string) (string, error) {
	if origin == none || origin == "null" {
		return origin, nil
	}
	scheme, host, found := strings.Cut(origin, "://")
	if !found || scheme == "" || host == "" || strings.ContainsAny(host, "/?#@ *") || strings.ContainsFunc(origin, unicode.IsControl) {
		return "", fmt.Errorf("%s is not an origin", quote(origin))
	}
	return origin, nil
}

// secretText is the kind of *string fields that nobody is shown.
type secretText struct{ legal string }

func (k secretText) set(field any, text string) error {
	switch {
	case text == none:
		text = ""
	case strings.ContainsFunc(text, unicode.IsControl):
		return errors.New("has a control character") // it is not repeated
	}
	*field.(*string) = text
	return nil
}

func (k secretText) show(field any) string {
	if *field.(*string) == "" {
		return none
	}
	return hidden
}

func (k secretText) allowed() string { return k.legal + ", or " + none }
