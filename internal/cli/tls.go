package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// TLS is flags that say how calls are secured. Each of them means TLS.
type TLS struct {
	on, unchecked                bool
	authorities, name, cert, key string
}

// AddTo adds the flags.
func (f *TLS) AddTo(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "tls", false, "call over TLS, with the authorities that the system trusts; each flag below implies it")
	f.AddFilesTo(flags)
}

// AddFilesTo is AddTo for who knows from an address whether it is TLS.
func (f *TLS) AddFilesTo(flags *pflag.FlagSet) {
	flags.StringVar(&f.authorities, "cacert", "", "`file` with the authorities to trust in place of the system's, in PEM")
	flags.StringVar(&f.cert, "cert", "", "`file` with the certificate to show to the server, in PEM; needs --key")
	flags.StringVar(&f.key, "key", "", "`file` with its private key, in PEM")
	flags.StringVar(&f.name, "servername", "", "`name` that the certificate of the server has to be for, if not that of the address")
	flags.BoolVar(&f.unchecked, "insecure-skip-verify", false, "trust any certificate of the server")
}

// Config returns nil for plaintext.
//
// Errors: one line that begins with the flag.
func (f *TLS) Config() (*tls.Config, error) {
	if *f == (TLS{}) {
		return nil, nil
	}
	config := &tls.Config{ServerName: f.name, InsecureSkipVerify: f.unchecked} //nolint:gosec // asked for by its name
	if f.authorities != "" {
		if f.unchecked {
			return nil, errors.New("--cacert and --insecure-skip-verify: one checks the server, the other does not; give one of them")
		}
		text, err := os.ReadFile(f.authorities)
		if err != nil {
			return nil, fmt.Errorf("--cacert: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--cacert %s: there is no certificate in it; want PEM", f.authorities)
		}
	}
	if (f.cert == "") != (f.key == "") {
		return nil, errors.New("--cert and --key belong together: give both or none")
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("--cert, --key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Explain adds to why a service cannot be reached what to do where TLS is the reason.
func (f *TLS) Explain(err error) error {
	text := err.Error()
	secured := *f != (TLS{})
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	switch {
	case has("x509:") && has("is valid for", "any IP SANs"):
		return fmt.Errorf("%w; give that name with --servername", err)
	case has("x509:"):
		return fmt.Errorf("%w; trust its authority with --cacert FILE", err)
	case secured && has("handshake") && has("EOF", "first record does not look like a TLS handshake"):
		return fmt.Errorf("%w; if it does not speak TLS, call it without --tls and what belongs to it", err)
	case secured && f.cert == "" && has("certificate required", "broken pipe", "connection reset", "came to nothing"):
		return fmt.Errorf("%w; if it wants a certificate of its callers, give --cert FILE --key FILE", err)
	case !secured && has("error reading server preface", "came to nothing"):
		return fmt.Errorf("%w; if it wants TLS, give --tls", err)
	}
	return err
}
