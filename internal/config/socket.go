package config

import (
	"cmp"
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
	standard := map[string]string{"listen": ":9000", "metrics": off, "probes": off, "drain_timeout": "", "log.level": "", "log.format": ""} // "": that of the key
	for _, key := range Keys() {
		own, is := standard[key.Name]
		switch {
		case is:
			key.Env, key.Default = "", cmp.Or(own, key.Default)
			flags = append(flags, key)
		case parent(key.Name) == socketSection && key.Name != "socket.methods": // which are of workers
			key.Flag = strings.ReplaceAll(last(key.Name), "_", "-")
			flags = append(flags, key)
		case key.Name == "auth":
			for _, part := range key.parts() {
				if part.Flag, part.Env = "auth-"+last(part.Name), key.Env; part.Name != "auth.doors" { // there are only sockets
					flags = append(flags, part)
				}
			}
		}
	}
	socket, _ := reflect.TypeFor[Config]().FieldByName("Socket")
	serve, _ := socket.Type.FieldByName("Serve")
	for _, key := range keysOf(serve.Type, "", append(socket.Index, serve.Index...)...) {
		key.Flag = key.Name
		flags = append(flags, key)
	}
	return flags
}

// LoadSocket makes the configuration of cabrank socket serve, which runs no workers: of
// sockets what its flags and variables say, else the file of the old server of juggler.0 if the
// flags name one, else the defaults. Errors: Faults.
func LoadSocket(given map[string]string, sources Sources) (*Config, error) {
	config, environ := standard(sources), parseEnviron(sources.Environ)
	config.Workers.MinReady = 0 // of none
	for _, key := range SocketFlags() {
		if key.Env == "" {
			config.setDefault(key, key.Default)
		}
	}
	keys := keysThat(func(k Key) bool {
		return k.Name == "control" || k.Name == "auth" || parent(k.Name) == socketSection
	})
	var faults Faults
	if name, is := given[ConfigFlag]; is {
		faults = config.readOld(name, sources)
	}
	faults = append(faults, config.apply(settingsOf(keys, environ, ofVariable, byVariable))...)
	faults = append(faults, config.apply(settingsOf(SocketFlags(), given, ofFlag, byFlag))...)
	config.Warnings = append(config.unknownVariables(environ), config.Warnings...)
	return config.checked(faults)
}

// RedisAddresses returns where calls and results are, and where events are; the second is empty
// if that is the same, both if all is in one process. They may hold passwords.
func (s Socket) RedisAddresses() (calls, events string) {
	addresses := append(strings.Fields(s.Redis), "", "")
	return addresses[0], addresses[1]
}

// cleanRedis accepts one address, or two with a blank between, and does not repeat them.
func cleanRedis(text string) (string, error) {
	addresses := len(strings.Fields(text))
	return text, wrong("", flaw{!forms["secret"].MatchString(text), "has a control character"}, flaw{addresses < 1 || addresses > 2, "is not one address, or two"})
}

func isOwnHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// cleanPageOrigin accepts what a browser sends, and all hosts below a domain.
func cleanPageOrigin(origin string) (string, error) {
	scheme, host, _ := strings.Cut(origin, "://")
	odd := host == "" || !forms["origin"].MatchString(scheme+"://"+strings.TrimPrefix(host, "*."))
	return strings.ToLower(origin), wrong(quote(origin), flaw{odd, "is not an origin"})
}
