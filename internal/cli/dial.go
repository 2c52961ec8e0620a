package cli

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/cabrank/cabrank/client"
)

// Dial says how a socket is opened, in two commands.
type Dial struct {
	headers  []string
	protocol string
	token    string
	tls      TLS
}

// AddTo adds the flags.
func (f *Dial) AddTo(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.headers, "header", nil, "`NAME:VALUE` to send with the handshake; several are possible")
	flags.StringVar(&f.token, "token", os.Getenv("CABRANK_TOKEN"), "`token` to send as Authorization: Bearer [CABRANK_TOKEN]")
	flags.Lookup("token").DefValue = "" // it is a secret
	flags.StringVar(&f.protocol, "protocol", "", "juggler.1 or juggler.0, in place of what the server chooses")
	f.tls.AddFilesTo(flags)
}

// Options are those of a client that makes no other connection.
//
// Errors: one line that begins with the flag.
func (f *Dial) Options() (client.Options, error) {
	header := http.Header{}
	for _, pair := range f.headers {
		name, value, ok := strings.Cut(pair, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return client.Options{}, fmt.Errorf("--header %.80q: want NAME:VALUE", pair)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	var protocols []string // both
	switch f.protocol {
	case "":
	case client.Juggler0, client.Juggler1:
		protocols = []string{f.protocol}
	default:
		return client.Options{}, fmt.Errorf("--protocol %.40q: juggler.1 and juggler.0 are possible", f.protocol)
	}
	secured, err := f.tls.Config()
	o := client.Options{
		NoReconnect: true, TLS: secured, Protocols: protocols,
		Header: func(context.Context) (http.Header, error) { return header, nil },
	}
	if f.token != "" {
		o.Token = func(context.Context) (string, error) { return f.token, nil }
	}
	return o, err
}
