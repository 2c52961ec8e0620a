package config

import (
	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
)

// kinds are those that a field names: what is more than a number or a word.
func kinds() map[string]kind {
	file, globs := text{clean: cleanFile, legal: "a path"}, list{cleanGlob, "globs, with {user} for who it is", 1000}
	methods := list{cleanPattern, patternLegal, maxMethods}
	page := text{clean: cleanPath, legal: "a path that begins with /"}
	return map[string]kind{
		// addresses and places
		"door": listenAt{mayBeShared: true}, "probes": listenAt{mayBeOff: true}, "metrics": listenAt{mayBeOff: true, path: "/metrics"},
		"networks": list{cleanNetwork, "addresses and networks such as 10.0.0.0/8", 100}, "control": text{clean: cleanControl, legal: controlLegal},
		"upstreams": list{cleanUpstream, upstreamLegal, maxUpstreams}, "servers": list{cleanNameServer, nameServerLegal, maxNameServers},
		"redis": redisAddresses{}, "push": text{clean: cleanPush, legal: "HOST:PORT, or off"}, "page": page,
		"paths": list{cleanPath, "paths that begin with /", 100}, "pages": list{cleanPageOrigin, "origins such as https://shop.example or https://*.shop.example", 100}, "origins": originList{list{cleanOrigin, "origins such as https://shop.example, or none", 100}},
		"file": file, "files": list{cleanLine, "names of files", 100}, "log": text{clean: cleanLogPath, legal: "a path with a /, stdout, or none"},

		// numbers that are more
		"workers": amount{number: `range:"1..1000"`}, "slots": amount{`range:"1..100000"`, "1-200", firstAutoSlots}, "memory": memoryLimit{}, "hedge": hedgeDelay{},

		// calls and callers
		"balance": balance{}, "caller": callerKey{}, "weights": weights(), "lanes": laneRules(), "rules": methodRules(),
		"methods": methods, "callers": list{cleanCaller, callersLegal, maxLaneCallers}, "codes": codes{list{cleanCode, codesLegal, grpcwire.NumCodes}},
		"cancel": words[rank.OnCancel]{0, rank.Hold, rank.Free, rank.Finish}, "cancelled": words[rank.OnCancel]{rank.Hold, rank.Free, rank.Finish},

		// workers
		"command": commandLine{}, "variables": variables(), "hooks": record{form: "{before_start: COMMAND, after_ready: COMMAND, before_stop: COMMAND}"},
		"warmup": record{"{method: /package.Service/Method, message: BASE64}", checkWarmUp}, "method": text{clean: cleanMethod, legal: "/package.Service/Method", optional: true}, "base64": base64Bytes{maxWarmUp}, "gauges": gauges{gaugePolicies()},

		// certificates and tokens
		"pairs": keyPairs{}, "clients": record{"{ca: FILE, names: [NAME, ...], required: true or false}", checkClients},
		"peers": record{"{ca: FILE, cert: FILE, key: FILE, name: NAME}", checkPeers}, "host": text{clean: cleanDNSName, legal: "a name"},
		"names": list{cleanClientName, "names in which * stands for anything but . and /", maxClientNames},
		"auth":  record{"{key: FILE, ...}", checkAuthParts}, "secret": text{cleanSecret, "a file, or env:NAME", true, true}, "source": text{clean: cleanSource, legal: "a file, env:NAME or https://...", optional: true},
		"line": text{clean: cleanLine, legal: "a text", optional: true}, "cookie": text{clean: cleanCookie, legal: "a name of a cookie", optional: true}, "globs": globs,
	}
}
