package certs_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/testkit"
)

// open has files for a port that asks for certificates.
func open(t *testing.T, port certs.Port) *certs.Files {
	t.Helper()
	files, err := certs.Open(port, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	return files
}

// meet has a caller and a port shake hands, and returns who the port takes it for.
func meet(t *testing.T, files *certs.Files, caller *tls.Config) (identity string, resumed bool, err error) {
	t.Helper()
	ln := testkit.Listen(t)
	defer ln.Close()
	here := testkit.Dial(t, ln.Addr().String())
	defer here.Close()
	there, err := ln.Accept()
	testkit.Must(t, err)
	port := tls.Server(there, files.Config())
	met := make(chan error, 1)
	go func() {
		defer there.Close()
		err := port.Handshake()
		if err == nil {
			_, err = port.Write([]byte{1})
		}
		met <- err
	}()
	conn := tls.Client(here, caller)
	_, told := io.ReadFull(conn, make([]byte, 1))
	if err := errors.Join(<-met, told); err != nil {
		return "", false, err
	}
	state := port.ConnectionState()
	identity, err = files.Identity(&state)
	return identity, state.DidResume, err
}

// Who shows a certificate of the right signer and name is known by it; any other one that is
// shown ends the handshake, and none, where one is required.
func TestClients(t *testing.T) {
	testkit.CheckLeaks(t)
	folder, until := t.TempDir(), time.Now().Add(time.Hour)
	server, alice := write(t, folder, "server.test", until), write(t, folder, "alice.test", until)
	port := certs.Port{Pairs: []certs.Pair{server}, Clients: certs.Clients{CA: alice.Cert, Names: []string{"*.test"}}}
	required, narrow := port, port
	required.Clients.Required = true
	narrow.Clients.Names = []string{"*", "bob.test"}
	old := port
	old.Clients.CA = write(t, folder, "old.test", time.Now().Add(-time.Minute)).Cert
	for what, tc := range map[string]struct {
		port  certs.Port
		shows string
		want  string // "": it is refused
	}{
		"fits":                   {port, "alice.test", "alice.test"},
		"fits what is required":  {required, "alice.test", "alice.test"},
		"shows none":             {port, "", "nobody"},
		"shows none to who asks": {required, "", ""},
		"of another signer":      {port, "server.test", ""},
		"of no name":             {narrow, "alice.test", ""},
		"expired":                {old, "old.test", ""},
	} {
		caller := &tls.Config{InsecureSkipVerify: true}
		if tc.shows != "" {
			pair, err := tls.LoadX509KeyPair(filepath.Join(folder, tc.shows+".crt"), filepath.Join(folder, tc.shows+".key"))
			testkit.Must(t, err)
			caller.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		got, _, err := meet(t, open(t, tc.port), caller)
		if got == "" && err == nil {
			got = "nobody"
		}
		testkit.Want(t, got == tc.want, "%s: %q, %v, want %q", what, got, err, tc.want)
	}
}

// A session is resumed, and is not any more when its caller's signer has changed.
func TestResumedClients(t *testing.T) {
	folder, until := t.TempDir(), time.Now().Add(time.Hour)
	server, alice := write(t, folder, "server.test", until), write(t, folder, "alice.test", until)
	pair, err := tls.LoadX509KeyPair(alice.Cert, alice.Key)
	testkit.Must(t, err)
	port := certs.Port{Pairs: []certs.Pair{server}, Clients: certs.Clients{CA: alice.Cert, Required: true}}
	files := open(t, port)
	caller := &tls.Config{
		InsecureSkipVerify: true, ServerName: "server.test", ClientSessionCache: tls.NewLRUClientSessionCache(1),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil },
	}
	for round := range 2 {
		if who, resumed, err := meet(t, files, caller); err != nil || who != "alice.test" || resumed != (round == 1) {
			t.Errorf("round %d: %q, resumed %v, %v", round, who, resumed, err)
		}
	}
	port.Clients.CA = server.Cert
	testkit.Must(t, files.Replace(port))
	if who, resumed, err := meet(t, files, caller); err == nil {
		t.Errorf("another signer: %q, resumed %v", who, resumed)
	}
}

// The first URI, DNS name or email address that is let in is who a caller is. A certificate
// without any will do where no names are listed, and tells nothing of its caller.
func TestIdentity(t *testing.T) {
	folder := t.TempDir()
	pair := write(t, folder, "a.test", time.Now().Add(time.Hour))
	spiffe, err := url.Parse("spiffe://prod/ns/shop/sa/cart")
	testkit.Must(t, err)
	shown := &x509.Certificate{URIs: []*url.URL{spiffe}, DNSNames: []string{"cart.shop", "x.y.shop", "b\x00d.test"}, EmailAddresses: []string{"cart@shop.test"}}
	nameless := &x509.Certificate{}
	nameless.Subject.CommonName, shown.Subject.CommonName = "root", "root"
	for glob, want := range map[string]string{
		"":                     "spiffe://prod/ns/shop/sa/cart",
		"*":                    "",
		"*.shop":               "cart.shop",
		"*.*.shop":             "x.y.shop",
		"spiffe://prod/*":      "",
		"spiffe://*/ns/*/sa/*": "spiffe://prod/ns/shop/sa/cart",
		"cart@*.test":          "cart@shop.test",
		"b*.test":              "",
		"root":                 "",
		"cart?shop":            "",
	} {
		port := certs.Port{Pairs: []certs.Pair{pair}, Clients: certs.Clients{CA: pair.Cert}}
		if glob != "" {
			port.Clients.Names = []string{glob}
		}
		state := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{shown}}
		files := open(t, port)
		if got, err := files.Identity(state); got != "" || err != nil {
			t.Errorf("%s: %q, %v without having verified it", glob, got, err)
		}
		state.VerifiedChains = [][]*x509.Certificate{{shown}}
		if got, err := files.Identity(state); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", glob, got, err, want)
		}
		state.PeerCertificates[0] = nameless
		if got, err := files.Identity(state); got != "" || (err == nil) != (glob == "") {
			t.Errorf("%s: without a name: %q, %v", glob, got, err)
		}
	}
	for file, want := range map[string]string{"no": "ca " + filepath.Join(folder, "no"), pair.Key: "has no certificate in PEM"} {
		if file == "no" {
			file = filepath.Join(folder, file)
		}
		err := certs.Check(certs.Port{Pairs: []certs.Pair{pair}, Clients: certs.Clients{CA: file}})
		testkit.Want(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "\n"),
			"%s: %v, want %q", file, err, want)
	}
}
