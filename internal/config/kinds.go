package config

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/cabrank/cabrank/internal/grpcwire"
	"github.com/cabrank/cabrank/internal/rank"
	"github.com/cabrank/cabrank/internal/scrape"
	"github.com/cabrank/cabrank/internal/strictyaml"
)

// kindOf is the kind of a field with these tags.
func kindOf(tag reflect.StructTag) kind {
	k := kinds()[tag.Get("kind")]
	k.tag = tag
	return k
}

// kinds are those that a field names: what is more than a number or a word.
var kinds = sync.OnceValue(func() map[string]kind {
	const gaugesLegal = "names of metrics, in which * stands for any letters,"
	line, weight, policy := formed("line", "%s is not a line of text"), kind{tag: `range:"0.01..1000"`}, words(scrape.Sum, scrape.Max, scrape.Min, scrape.Avg, scrape.Last, scrape.Each)
	return map[string]kind{
		// addresses and places
		"door":      listenAt("HOST:PORT, port 0 to 65535; with the word shared behind it others may listen there, too", sharedMark),
		"probes":    listenAt("HOST:PORT, port 0 to 65535, or off", off),
		"metrics":   listenAt("HOST:PORT or HOST:PORT/PATH, port 0 to 65535, or off", off, metricsPath),
		"bind":      {legal: "a host name or address, empty for every interface", read: reading(cleanHost)},
		"networks":  {legal: "addresses and networks such as 10.0.0.0/8", none: none, most: 100, read: reading(readNetwork)},
		"control":   {legal: "auto, off, or the path of a unix socket, with a /", read: reading(cleanControl)},
		"upstreams": {legal: "host:port, unix:/path, dns:name:port, srv:name or tls:host:port", none: none, most: 1000, read: reading(cleanUpstream)},
		"servers":   {legal: "ADDRESS or ADDRESS:PORT", none: none, most: 8, read: reading(cleanNameServer)},
		"redis":     {legal: "an address, that of events behind it if it is another one", read: reading(cleanRedis), none: none, secret: true},
		"page":      {legal: "a path that begins with /", read: reading(cleanPath)},
		"paths":     {legal: "paths that begin with /", none: none, most: 100, read: reading(cleanPath)},
		"pages":     {legal: "origins such as https://shop.example or https://*.shop.example", none: none, most: 100, read: reading(cleanPageOrigin)},
		"origins":   {legal: "origins such as https://shop.example, or none", none: ownHost, most: 100, read: reading(formed("origin", "%s is not an origin"))}, // none is an origin
		"file":      {legal: "a path", read: reading(formed("line", "is no path of a file"))},
		"files":     {legal: "names of files", none: none, most: 100, read: reading(line)},
		"collector": {legal: "a URL such as http://127.0.0.1:4318, or env", read: reading(formed("collector", "is not a URL, or has a user or a query in it")), none: none}, // it is not repeated
		"log":       {legal: "a path with a /, stdout, or none", read: reading(formed("log", "%s is not a path with a /"))},

		// numbers that are more
		"workers": amount(`range:"1..1000"`, "", 0),
		"slots":   amount(`range:"1..100000"`, "1-200", firstAutoSlots),
		"memory":  {legal: "1% to 100% of the container's limit, " + strictyaml.Range(memoryBytes), read: readMemory, write: showMemory},

		// calls and callers
		"balance":   {legal: "late_binding, ring_hash:NAME of a header or metadata key in lower case, or of " + authorityField, read: reading(cleanBalance)},
		"caller":    callerKey(),
		"weights":   entries(1000, callersLegal+" with weights of "+weight.allowed(), nested{form: "{key: weight, ...}", names: callersLegal, check: cleanCaller, path: callerPath, value: weight}),
		"lanes":     entries(8, "", nested{form: "{name: {...}, ...}", names: "names of lower case letters, digits, _ and -", check: checkLaneName, path: entryPath, field: "Name"}),
		"rules":     entries(maxMethods, "", nested{form: "{name: {...}, ...}", names: patternLegal, check: checkPattern, path: entryPath, field: "Pattern", whole: checkRule}),
		"methods":   {legal: patternLegal, none: none, most: maxMethods, read: reading(cleanPattern)},
		"callers":   {legal: callersLegal, none: none, most: 1000, read: reading(cleanCaller)},
		"codes":     {legal: codesLegal, none: none, most: grpcwire.NumCodes, read: reading(readCode)},
		"cancel":    words(0, rank.Hold, rank.Free, rank.Finish),
		"cancelled": words(rank.Hold, rank.Free, rank.Finish),

		// workers
		"command":   {legal: fmt.Sprintf("a program and its arguments, at most %d words", maxArguments), none: none, read: readCommand, readAll: readArguments, write: showCommand},
		"variables": entries(200, "", nested{form: "{NAME: value, ...}", names: variablesLegal, check: checkVariable, path: variablePath, value: kind{legal: fmt.Sprintf("text of at most %d bytes", maxVariable), read: reading(cleanVariable), secret: true}}),
		"gauges": entries(1000, gaugesLegal+" with policies of "+policy.allowed(), nested{
			form: "{key: policy, ...}", names: gaugesLegal, check: formed("gauge", "%s is no name of a metric"), path: entryPath, value: policy, word: "per_worker",
		}),
		"hooks":  parts("{before_start: COMMAND, after_ready: COMMAND, before_stop: COMMAND}"),
		"warmup": parts("{method: /package.Service/Method, message: BASE64}"),
		"method": {legal: "/package.Service/Method", read: reading(cleanMethod), none: none},
		"base64": {legal: "base64 of at most " + showSize(maxMessage), none: none, read: reading(readMessage), write: showMessage},

		// certificates and tokens
		"pairs":   entries(100, "[{cert: FILE, key: FILE}, ...]", nested{form: "[{cert: FILE, key: FILE}, ...]", path: entryPath}),
		"clients": parts("{ca: FILE, names: [NAME, ...], required: true or false}"),
		"peers":   parts("{ca: FILE, cert: FILE, key: FILE, name: NAME}"),
		"host":    {legal: "a name", read: reading(cleanDNSName)},
		"names":   {legal: "names in which * stands for anything but . and /", none: none, most: 1000, read: reading(formed("visible", "%s is no name in a certificate"))},
		"auth":    parts("{key: FILE, ...}"),
		"globs":   {legal: "globs, with {user} for who it is", none: none, most: 1000, read: reading(cleanGlob)},
		"secret":  {legal: "a file, or env:NAME", read: reading(formed("secret", "has a control character")), none: none, secret: true}, // it is not repeated
		"source":  {legal: "a file, env:NAME or https://...", read: reading(formed("source", "it is not the name of a file")), none: none},
		"line":    {legal: "a text", read: reading(line), none: none},
		"cookie":  {legal: "a name of a cookie", read: reading(formed("token", "%s is not a name of a cookie")), none: none}, // RFC 6265 4.1.1
	}
})

// parts is the kind of one struct, entries that of what has many; "": the names are what is legal.
func parts(form string) kind { return kind{legal: form, none: none, nested: &nested{form: form}} }

func entries(most int, legal string, of nested) kind {
	return kind{legal: cmp.Or(legal, of.names), none: none, most: most, nested: &of}
}

// words is the kind of fields whose values have names.
func words[T fmt.Stringer](all ...T) kind {
	texts := kind{}.items(&all)
	one := kind{tag: reflect.StructTag(`oneof:"` + strings.Join(texts, "|") + `"`)}
	return kind{legal: one.allowed(), read: func(into any, text string) error {
		var word string
		err := one.set(&word, text)
		if err == nil {
			*into.(*T) = all[slices.Index(texts, word)]
		}
		return err
	}}
}

// reading stores what a text is read as.
func reading[T any](read func(text string) (T, error)) func(into any, text string) error {
	return func(into any, text string) error {
		value, err := read(text)
		if err == nil {
			*into.(*T) = value
		}
		return err
	}
}

// formed accepts text of one of the forms. what says of another text what is wrong with it,
// with %s for the text where it may be repeated.
func formed(form, what string) func(string) (string, error) {
	return func(text string) (string, error) {
		if !forms[form].MatchString(text) {
			return "", errors.New(strings.Replace(what, "%s", quote(text), 1))
		}
		return text, nil
	}
}

// flaw is what is wrong with a text, if it is so.
type flaw struct {
	so   bool
	what string
}

// wrong is an error by the first that is so of a text; told is the text, where it may be repeated.
func wrong(told string, flaws ...flaw) error {
	for _, f := range flaws {
		if f.so {
			return errors.New(strings.TrimSpace(told + " " + f.what))
		}
	}
	return nil
}

// forms are those of texts of which no more has to be known.
var forms = map[string]*regexp.Regexp{
	"ascii":     regexp.MustCompile(`^[\x20-\x7e]*$`),
	"gauge":     regexp.MustCompile(`^[a-zA-Z0-9_:*]{1,200}$`), // * stands for any letters
	"lane":      regexp.MustCompile(`^[a-z0-9_-]{1,32}$`),      // the label of a metric
	"line":      regexp.MustCompile(`^\P{Cc}+$`),               // Cc: control characters
	"collector": regexp.MustCompile(`^(env|https?://[^\s/@?#]+(/[^\s?#]*)?)$`),
	"log":       regexp.MustCompile(`^(none|stdout|\P{Cc}*/\P{Cc}*)$`),            // a word without a slash would be a file that nobody finds again
	"name":      regexp.MustCompile(`^([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?$`), // of a host or service, in lower case (RFC 1035 2.3.4)
	"origin":    regexp.MustCompile(`^(none|null|[^/\p{Cc}]+://[^/?#@ *\p{Cc}]+)$`),
	// gRPC itself does not say of which characters names consist, so all that can stand in a path are taken.
	"pattern": regexp.MustCompile(`^/[^/*?#"\\[:^graph:]]+/(\*|[^/*?#"\\[:^graph:]]+)$`),

	"path": regexp.MustCompile(`^/[^ ?#\p{Cc}]*$`),

	// Headers that are the same for every call, or not allowed in HTTP/2.
	"protocol": regexp.MustCompile(`^(grpc-.*|connection|content-(length|type)|keep-alive|` +
		`proxy-connection|te|trailer|transfer-encoding|upgrade)$`),

	"secret":   regexp.MustCompile(`^\P{Cc}*$`),
	"source":   regexp.MustCompile(`^([^-{\p{Cc}]\P{Cc}*)?$`),          // what looks like a key itself is none
	"token":    regexp.MustCompile("^[a-zA-Z0-9!#$%&'*+.^_`|~-]+$"),    // RFC 9110 5.6.2
	"variable": regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`),         // POSIX, Base Definitions 8.1
	"word":     regexp.MustCompile(`^[^"'\\\[\]\pZ\s\p{Cc}]+$`),        // of a command, that needs no quotes
	"yaml":     regexp.MustCompile(`^[a-zA-Z0-9/_][a-zA-Z0-9/_.*-]*$`), // what needs no quotes
	"visible":  regexp.MustCompile(`^[[:graph:]]+$`),                   // ASCII without blanks

	// A word in braces that may be meant as a placeholder. What a shell would replace,
	// ${PORT}, is told apart by its dollar.
	"placeholder": regexp.MustCompile(`\$?\{[ \t]*[A-Za-z_]+[ \t]*\}`),

	// Variables that Kubernetes puts into every pod for a Service whose name begins with
	// cabrank (pods, "Accessing the Service": {NAME}_SERVICE_HOST), and values that show
	// what the others of them are.
	"service link": regexp.MustCompile(`_SERVICE_(HOST|PORT(_[A-Z0-9_]+)?)$|_PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?$`),
	"port link":    regexp.MustCompile(`^(tcp|udp|sctp)://`),
}
