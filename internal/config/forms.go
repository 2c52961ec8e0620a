package config

import "regexp"

// forms are those of texts of which no more has to be known.
var forms = map[string]*regexp.Regexp{
	"ascii":  regexp.MustCompile(`^[\x20-\x7e]*$`),
	"gauge":  regexp.MustCompile(`^[a-zA-Z0-9_:*]{1,200}$`),                    // * stands for any letters
	"lane":   regexp.MustCompile(`^[a-z0-9_-]{1,32}$`),                         // the label of a metric
	"line":   regexp.MustCompile(`^\P{Cc}+$`),                                  // Cc: control characters
	"log":    regexp.MustCompile(`^(none|stdout|\P{Cc}*/\P{Cc}*)$`),            // a word without a slash would be a file that nobody finds again
	"name":   regexp.MustCompile(`^([a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?$`), // of a host or service, in lower case (RFC 1035 2.3.4)
	"origin": regexp.MustCompile(`^(none|null|[^/\p{Cc}]+://[^/?#@ *\p{Cc}]+)$`),
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
