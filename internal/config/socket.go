package config

import (
	"cmp"
	"fmt"
	"net"
	"reflect"
	"slices"
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
	own := map[string]string{"listen": ":9000", "metrics": off, "probes": off}
	for _, key := range Keys() {
		switch key.Name {
		case "socket.methods": // of workers
			continue
		case "listen", "metrics", "probes", "drain_timeout", "log.level", "log.format":
			key.Env, key.Default = "", cmp.Or(own[key.Name], key.Default)
		default:
			if parent(key.Name) != socketSection {
				continue
			}
			key.Flag = strings.ReplaceAll(last(key.Name), "_", "-")
		}
		flags = append(flags, key)
	}
	for _, p := range fieldsOf(reflect.TypeFor[Auth]()) {
		if p.name != "doors" { // there are only sockets
			key := p.asKey(func(c *Config) any { return &c.Auth })
			key.Name, key.Flag, key.Env = "auth."+p.name, "auth-"+p.name, variableOf(prefix, "auth")
			flags = append(flags, key)
		}
	}
	for _, p := range fieldsOf(reflect.TypeFor[SocketServe]()) {
		key := p.asKey(func(c *Config) any { return &c.Socket.Serve })
		key.Flag = key.Name
		flags = append(flags, key)
	}
	return flags
}

// LoadSocket makes the configuration of cabrank socket serve, which runs no workers: of
// sockets what its flags and variables say, else the defaults. Errors: Faults.
func LoadSocket(given map[string]string, sources Sources) (*Config, error) {
	environ := parseEnviron(sources.Environ)
	config := &Config{origins: map[string]Origin{}}
	config.setDefaults(ownKeys(), sources)
	config.Workers.MinReady = 0 // of none
	keys := slices.DeleteFunc(Keys(), func(k Key) bool {
		return k.Name != "control" && k.Name != "auth" && parent(k.Name) != socketSection
	})
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

func isOwnHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
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
