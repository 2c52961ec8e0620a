package redislink

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

const (
	// AnswerWithin bounds how long Redis may take to answer.
	AnswerWithin = 10 * time.Second

	// shardsEvery and sentinelsEvery are how often the nodes of a Cluster are looked at,
	// and who is the primary: both are told of changes, and may miss them.
	shardsEvery, sentinelsEvery = 10 * time.Second, 5 * time.Second

	// mostMoves bounds how often a command follows a slot that moves.
	mostMoves = 8
)

var (
	errForm = errors.New("redis: want an address such as HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DB, rediss:// with TLS, or unix:///PATH; in a password %23 is #, %2F is /, %3F is ?, %40 is @")

	errParameter = errors.New("redis: unknown parameter in the address: addr, db, master_set, sentinel_username, sentinel_password, cacert, cert and key are possible")
)

// parameters are what may follow the "?" of an address.
func parameters() []string {
	return []string{"addr", "db", "master_set", "sentinel_username", "sentinel_password", "cacert", "cert", "key"}
}

// ClientOption reads an address.
//
// Shape: HOST:PORT, redis://USER:PASSWORD@HOST:PORT/DB, rediss:// with TLS, or
// unix:///PATH. Behind a "?" may be addr=HOST:PORT, more nodes of a Cluster;
// master_set=NAME, which makes all of them Sentinels (with sentinel_username and
// sentinel_password if they have their own); and cacert=FILE, cert=FILE and key=FILE of
// TLS. Whether it is a Cluster is for Redis to say.
// Errors: one line, with no password in it.
func ClientOption(address string) (rueidis.ClientOption, error) {
	o := rueidis.ClientOption{InitAddress: []string{address}}
	if strings.ContainsAny(address, "/@?#") { // no HOST:PORT: it may have a password
		var err error
		if o, err = readURL(address); err != nil {
			return o, err
		}
	} else if !isHostPort(address) {
		return o, errForm
	}
	o.DisableCache, o.PipelineMultiplex = true, -1 // one connection for what is pipelined, which keeps its order
	o.DisableRetry = true                          // rueidis would go on until the context ends, which may be never
	o.ConnWriteTimeout = AnswerWithin
	o.Dialer.Timeout, o.Dialer.KeepAlive = AnswerWithin/2, AnswerWithin
	o.Sentinel.Dialer, o.Sentinel.TLSConfig = o.Dialer, o.TLSConfig
	o.ClusterOption.ShardsRefreshInterval, o.Sentinel.TopologyRefreshInterval = shardsEvery, sentinelsEvery
	o.ClusterOption.MaxMovedRedirections = mostMoves
	return o, nil
}

// isHostPort reports whether a text is HOST:PORT; the host may be empty, which is this one.
func isHostPort(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && n > 0
}

// readURL has rueidis read it, which takes much for granted.
func readURL(address string) (o rueidis.ClientOption, err error) {
	u, err := url.Parse(address)
	if err != nil || !slices.Contains([]string{"redis", "rediss", "valkey", "valkeys", "unix"}, u.Scheme) ||
		u.Opaque != "" || u.Fragment != "" || (u.Scheme == "unix") == (u.Host != "") {
		return o, errForm
	}
	more, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return o, errForm
	}
	if err := checkParameters(u, more); err != nil {
		return o, err
	}
	if u.Path == "/" {
		u.Path = ""
	}
	if o, err = rueidis.ParseURL(u.String()); err != nil {
		return o, errForm
	}
	o.ForceSingleClient = u.Scheme == "unix"
	o.Sentinel.Username, o.Sentinel.Password = more.Get("sentinel_username"), more.Get("sentinel_password")
	return o, addFiles(o.TLSConfig, more)
}

// checkParameters refuses what would be passed over in silence.
func checkParameters(u *url.URL, more url.Values) error {
	for name := range more {
		if !slices.Contains(parameters(), name) {
			return errParameter
		}
	}
	if u.Scheme != "unix" && u.Port() != "" && !isHostPort(u.Host) {
		return errForm
	}
	for _, addr := range more["addr"] {
		if !isHostPort(addr) || u.Scheme == "unix" {
			return errors.New("redis: addr in the address: want HOST:PORT of another node")
		}
	}
	if more.Has("master_set") && (more.Get("master_set") == "" || u.Port() == "") {
		return errors.New("redis: master_set in the address: want a name, and the addresses of Sentinels with their ports")
	}
	secure := u.Scheme == "rediss" || u.Scheme == "valkeys"
	if (more.Has("cacert") || more.Has("cert") || more.Has("key")) && !secure {
		return errors.New("redis: cacert, cert and key in the address are for rediss://")
	}
	if more.Has("cert") != more.Has("key") {
		return errors.New("redis: cert and key in the address belong together")
	}
	return nil
}

// addFiles reads the certificates that are named.
func addFiles(to *tls.Config, more url.Values) error {
	if file := more.Get("cacert"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("redis: cacert in the address: %w", err)
		}
		to.RootCAs = x509.NewCertPool()
		if !to.RootCAs.AppendCertsFromPEM(text) {
			return fmt.Errorf("redis: cacert in the address: no certificate in %s", file)
		}
	}
	if file := more.Get("cert"); file != "" {
		pair, err := tls.LoadX509KeyPair(file, more.Get("key"))
		if err != nil {
			return fmt.Errorf("redis: cert and key in the address: %w", err)
		}
		to.Certificates = []tls.Certificate{pair}
	}
	return nil
}
