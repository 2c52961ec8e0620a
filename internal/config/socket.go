package config

import (
	"fmt"
	"net"
	"reflect"
	"strings"
)

// socketSection is the part of the names of its keys before the dot. What follows is,
// with dashes, also the name of the flag of cabrank socket serve.
const socketSection = "socket"

// ownHost is the word for the origin that needs no list.
const ownHost = "host"

// SocketFlags are the flags of cabrank socket serve: those that are keys, or parts of auth,
// too, with the same meanings and ranges, and its own. Those that have no variable have
// defaults of their own.
func SocketFlags() (flags []Key) {
	for _, key := range Keys() {
		switch key.Name {
		case "socket.methods": // of workers
			continue
		case "listen", "metrics", "probes", "drain_timeout", "log.level", "log.format":
			key.Env = ""
			if own := map[string]string{"listen": ":9000", "metrics": off, "probes": off}[key.Name]; own != "" {
				key.Default = own
			}
		default:
			if key.section() != socketSection {
				continue
			}
			key.Flag = strings.ReplaceAll(last(key.Name), "_", "-")
		}
		flags = append(flags, key)
	}
	for _, p := range fieldsOf(reflect.TypeFor[Auth]()) {
		if p.name != "doors" { // there are only sockets
			key := p.flag(func(c *Config) any { return &c.Auth })
			key.Name, key.Flag, key.Env = "auth."+p.name, "auth-"+p.name, variableOf("auth")
			flags = append(flags, key)
		}
	}
	for _, p := range fieldsOf(reflect.TypeFor[SocketServe]()) {
		flags = append(flags, p.flag(func(c *Config) any { return &c.Socket.Serve }))
	}
	return flags
}

// flag is a field of a struct as a key that has nothing but a flag.
func (f field) flag(of func(*Config) any) Key {
	return Key{
		Name: f.name, Flag: f.name, Arg: f.tag.Get("arg"), Default: f.tag.Get("default"), Help: f.tag.Get("help"),
		kind: f.kind, field: func(c *Config) any { return f.of(reflect.ValueOf(of(c)).Elem()) },
	}
}

// LoadSocket makes the configuration of cabrank socket serve, which runs no workers: of
// sockets what its flags and variables say, else the defaults. Errors: Faults.
func LoadSocket(given map[string]string, sources Sources) (*Config, error) {
	environ := parseEnviron(sources.Environ)
	config := &Config{origins: map[string]Origin{}}
	config.setDefaults(ownKeys(), sources)
	config.Workers.MinReady = 0 // of none
	keys := sectionKeys(socketSection)
	for _, key := range Keys() {
		if key.Name == "control" || key.Name == "auth" {
			keys = append(keys, key)
		}
	}
	faults := config.apply(variableSettings(keys, environ))
	for _, key := range SocketFlags() {
		if argument, isGiven := given[key.Flag]; isGiven {
			faults = append(faults, config.apply([]setting{key.written(argument, Origin{Flag: key.Flag})})...)
		} else if key.Env == "" {
			_ = key.kind.set(key.field(config), key.Default) // one that fits
		}
	}
	if len(faults) == 0 {
		faults = config.contradictions()
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
	idle = append(idle, idleSetting{len(c.Socket.Paths) == 0 && !c.Auth.AllDoors(), "auth", "there are no sockets, socket.path is none", "socket.path"})
	return idle
}

func isOwnHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// openCalls warns of a port of which sockets alone are asked for a token.
func (c *Config) openCalls() []string {
	if len(c.Socket.Paths) == 0 || !c.Auth.IsOn() || c.Auth.AllDoors() || isOwnHost(c.Listen.Host) {
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

// cleanPageOrigin accepts what a browser sends, and all hosts below a domain.
func cleanPageOrigin(origin string) (string, error) {
	scheme, host, _ := strings.Cut(origin, "://")
	if host == "" || !forms["origin"].MatchString(scheme+"://"+strings.TrimPrefix(host, "*.")) {
		return "", fmt.Errorf("%s is not an origin", quote(origin))
	}
	return strings.ToLower(origin), nil
}
