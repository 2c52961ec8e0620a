package config

import (
	"fmt"
	"reflect"
	"sync"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/scrape"
)

// kindOf is the kind of a field with these tags.
func kindOf(tag reflect.StructTag) kind {
	if named, is := kinds()[tag.Get("kind")]; is {
		return named
	}
	return plain{tag}
}

// kinds are those that a field names: what is more than a number or a word.
var kinds = sync.OnceValue(func() map[string]kind {
	line := formed("line", "%s is not a line of text")
	origins := listOf(formed("origin", "%s is not an origin"), "origins such as https://shop.example, or none", 100)
	origins.empty = ownHost // none is an origin
	return map[string]kind{
		// addresses and places
		"door":      listenAt{legal: "HOST:PORT, port 0 to 65535; with the word shared behind it others may listen there, too", mayBeShared: true}.kind(),
		"probes":    listenAt{legal: "HOST:PORT, port 0 to 65535, or off", mayBeOff: true}.kind(),
		"metrics":   listenAt{legal: "HOST:PORT or HOST:PORT/PATH, port 0 to 65535, or off", mayBeOff: true, path: "/metrics"}.kind(),
		"bind":      text{clean: cleanHost, legal: "a host name or address, empty for every interface"},
		"networks":  listOf(readNetwork, "addresses and networks such as 10.0.0.0/8", 100),
		"control":   text{clean: cleanControl, legal: "auto, off, or the path of a unix socket, with a /"},
		"upstreams": listOf(cleanUpstream, "host:port, unix:/path, dns:name:port, srv:name or tls:host:port", 1000),
		"servers":   listOf(cleanNameServer, "ADDRESS or ADDRESS:PORT", 8),
		"redis":     text{clean: cleanRedis, legal: "an address, that of events behind it if it is another one", orNone: true, secret: true},
		"push":      text{clean: cleanPush, legal: "HOST:PORT, or off"},
		"page":      text{clean: cleanPath, legal: "a path that begins with /"},
		"paths":     listOf(cleanPath, "paths that begin with /", 100),
		"pages":     listOf(cleanPageOrigin, "origins such as https://shop.example or https://*.shop.example", 100),
		"origins":   origins,
		"file":      text{clean: formed("line", "is no path of a file"), legal: "a path"},
		"files":     listOf(line, "names of files", 100),
		"log":       text{clean: formed("log", "%s is not a path with a /"), legal: "a path with a /, stdout, or none"},

		// numbers that are more
		"workers": amount(`range:"1..1000"`, "", 0),
		"slots":   amount(`range:"1..100000"`, "1-200", firstAutoSlots),
		"memory":  memoryLimit(),

		// calls and callers
		"balance":   balance(),
		"caller":    callerKey(),
		"weights":   nested{form: "key: weight", max: 1000, names: callersLegal, check: accepted(cleanCaller), path: callerPath, value: plain{`range:"0.01..1000"`}, all: "weights"},
		"lanes":     nested{form: "name: {...}", max: 8, names: "names of lower case letters, digits, _ and -", check: checkLaneName, path: entryPath, field: "Name"},
		"rules":     nested{form: "name: {...}", max: maxMethods, names: patternLegal, check: checkPattern, path: entryPath, field: "Pattern"},
		"methods":   listOf(cleanPattern, patternLegal, maxMethods),
		"callers":   listOf(cleanCaller, callersLegal, 1000),
		"codes":     listOf(readCode, codesLegal, grpcwire.NumCodes),
		"cancel":    words(0, rank.Hold, rank.Free, rank.Finish),
		"cancelled": words(rank.Hold, rank.Free, rank.Finish),

		// workers
		"command": commandLine{},
		"variables": nested{
			form: "NAME: value", max: 200, names: variablesLegal, check: checkVariable, path: variablePath,
			value: text{clean: cleanVariable, legal: fmt.Sprintf("text of at most %d bytes", maxVariable), secret: true},
		},
		"gauges": nested{
			form: "key: policy", max: 1000, names: "names of metrics, in which * stands for any letters,", check: accepted(formed("gauge", "%s is no name of a metric")),
			path: entryPath, value: words(scrape.Sum, scrape.Max, scrape.Min, scrape.Avg, scrape.Last, scrape.Each), all: "policies", word: "per_worker",
		},
		"hooks":  nested{form: "{before_start: COMMAND, after_ready: COMMAND, before_stop: COMMAND}"},
		"warmup": nested{form: "{method: /package.Service/Method, message: BASE64}"},
		"method": text{clean: cleanMethod, legal: "/package.Service/Method", orNone: true},
		"base64": base64Bytes(64 * KiB),

		// certificates and tokens
		"pairs":   nested{form: "{cert: FILE, key: FILE}", max: 100, list: true},
		"clients": nested{form: "{ca: FILE, names: [NAME, ...], required: true or false}"},
		"peers":   nested{form: "{ca: FILE, cert: FILE, key: FILE, name: NAME}"},
		"host":    text{clean: cleanDNSName, legal: "a name"},
		"names":   listOf(formed("visible", "%s is no name in a certificate"), "names in which * stands for anything but . and /", 1000),
		"auth":    nested{form: "{key: FILE, ...}"},
		"globs":   listOf(cleanGlob, "globs, with {user} for who it is", 1000),
		"secret":  text{clean: formed("secret", "has a control character"), legal: "a file, or env:NAME", orNone: true, secret: true}, // it is not repeated
		"source":  text{clean: formed("source", "it is not the name of a file"), legal: "a file, env:NAME or https://...", orNone: true},
		"line":    text{clean: line, legal: "a text", orNone: true},
		"cookie":  text{clean: formed("token", "%s is not a name of a cookie"), legal: "a name of a cookie", orNone: true}, // RFC 6265 4.1.1
	}
})
