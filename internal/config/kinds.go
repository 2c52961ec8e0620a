package config

import (
	"reflect"

	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
)

// kinds are those that a field names: what is more than a number or a word.
func kinds() map[string]kind {
	line := formed("line", "%s is not a line of text")
	origins := listOf(formed("origin", "%s is not an origin"), "origins such as https://shop.example, or none", 100)
	origins.empty = ownHost // none is an origin
	return map[string]kind{
		// addresses and places
		"door": listenAt{mayBeShared: true}.kind(), "probes": listenAt{mayBeOff: true}.kind(), "metrics": listenAt{mayBeOff: true, path: "/metrics"}.kind(),
		"networks":  listOf(readNetwork, "addresses and networks such as 10.0.0.0/8", 100),
		"control":   text(cleanControl, controlLegal),
		"upstreams": listOf(cleanUpstream, upstreamLegal, maxUpstreams), "servers": listOf(cleanNameServer, nameServerLegal, maxNameServers),
		"redis": redisAddresses(), "push": text(cleanPush, "HOST:PORT, or off"),
		"page": text(cleanPath, "a path that begins with /"), "paths": listOf(cleanPath, "paths that begin with /", 100),
		"pages": listOf(cleanPageOrigin, "origins such as https://shop.example or https://*.shop.example", 100), "origins": origins,
		"file": text(formed("line", "is no path of a file"), "a path"), "files": listOf(line, "names of files", 100),
		"log": text(formed("log", "%s is not a path with a /"), "a path with a /, stdout, or none"),

		// numbers that are more
		"workers": amount(`range:"1..1000"`, "", 0), "slots": amount(`range:"1..100000"`, "1-200", firstAutoSlots),
		"memory": memoryLimit(), "hedge": hedgeDelay(),

		// calls and callers
		"balance": balance(), "caller": callerKey(), "weights": weights().kind(), "lanes": laneRules(), "rules": methodEntries(),
		"methods": listOf(cleanPattern, patternLegal, maxMethods), "callers": listOf(cleanCaller, callersLegal, maxLaneCallers),
		"codes":  listOf(readCode, codesLegal, grpcwire.NumCodes),
		"cancel": words(0, rank.Hold, rank.Free, rank.Finish), "cancelled": words(rank.Hold, rank.Free, rank.Finish),

		// workers
		"command": commandLine{}, "variables": variables().kind(), "gauges": gauges{gaugePolicies().kind()},
		"hooks":  record(reflect.TypeFor[Hooks](), "{before_start: COMMAND, after_ready: COMMAND, before_stop: COMMAND}"),
		"warmup": record(reflect.TypeFor[WarmUp](), "{method: /package.Service/Method, message: BASE64}"),
		"method": optional(text(cleanMethod, "/package.Service/Method")), "base64": base64Bytes(maxWarmUp),

		// certificates and tokens
		"pairs": sequence(reflect.TypeFor[certs.Pair](), "{cert: FILE, key: FILE}", maxKeyPairs), "clients": record(reflect.TypeFor[certs.Clients](), "{ca: FILE, names: [NAME, ...], required: true or false}"),
		"peers": record(reflect.TypeFor[certs.Peer](), "{ca: FILE, cert: FILE, key: FILE, name: NAME}"), "host": text(cleanDNSName, "a name"),
		"names":  listOf(formed("visible", "%s is no name in a certificate"), "names in which * stands for anything but . and /", maxClientNames),
		"auth":   record(reflect.TypeFor[Auth](), "{key: FILE, ...}"),
		"secret": optional(secret(text(formed("secret", "has a control character"), "a file, or env:NAME"))), // it is not repeated
		"source": optional(text(formed("source", "it is not the name of a file"), "a file, env:NAME or https://...")),
		"line":   optional(text(line, "a text")), "globs": listOf(cleanGlob, "globs, with {user} for who it is", 1000),
		"cookie": optional(text(formed("token", "%s is not a name of a cookie"), "a name of a cookie")), // RFC 6265 4.1.1
	}
}
