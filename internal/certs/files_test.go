package certs_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/testkit"
)

// write makes a pair for a name in a folder.
func write(t *testing.T, folder, name string, until time.Time) certs.Pair {
	t.Helper()
	cert, key, _ := testkit.Certificate(t, folder, name, until)
	return certs.Pair{Cert: cert, Key: key}
}

func put(t *testing.T, name string, content []byte) {
	t.Helper()
	testkit.Must(t, os.WriteFile(name, content, 0o600))
}

// served is the certificate that a server of files shows to who asks for a name.
func served(t *testing.T, files *certs.Files, name string) *x509.Certificate {
	t.Helper()
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	go func() { _ = tls.Server(there, files.Config()).Handshake() }() // ends with the pipe
	caller := tls.Client(here, &tls.Config{ServerName: name, InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	testkit.Must(t, caller.Handshake())
	testkit.Equal(t, caller.ConnectionState().NegotiatedProtocol, "h2", "is agreed on")
	return caller.ConnectionState().PeerCertificates[0]
}

// Who asks for a name gets its certificate, and for one that is not there the first. Files
// that change are used soon, those that cannot be used are not, and said once.
func TestFiles(t *testing.T) {
	testkit.CheckLeaks(t)
	folder, until := t.TempDir(), time.Now().Add(time.Hour)
	pairs := []certs.Pair{write(t, folder, "a.test", until), write(t, folder, "b.test", until)}
	var log lines
	files, err := certs.Open(certs.Port{Pairs: pairs}, slog.New(slog.NewTextHandler(&log, nil)))
	testkit.Must(t, err)
	for asked, want := range map[string]string{"a.test": "a.test", "b.test": "b.test", "c.test": "a.test", "": "a.test"} {
		testkit.Equal(t, served(t, files, asked).DNSNames[0], want, "%q gets", asked)
	}
	before := served(t, files, "b.test")
	write(t, folder, "b.test", until.Add(time.Hour))
	testkit.Eventually(t, time.Minute, "the new one", func() bool { return !served(t, files, "b.test").Equal(before) })
	left := files.Expires()[pairs[1].Cert]
	testkit.Want(t, left >= 90*time.Minute, "it expires in %v", left)
	before = served(t, files, "b.test")
	put(t, pairs[1].Key, []byte("half"))
	testkit.Eventually(t, time.Minute, "the line", func() bool {
		testkit.Want(t, served(t, files, "b.test").Equal(before), "the one of before is gone")
		return strings.Contains(log.text(), "those of before stay")
	})
	testkit.Want(t, files.Replace(certs.Port{Pairs: pairs[1:]}) != nil, "a key that is none is taken")
	err = files.Replace(certs.Port{Pairs: pairs[:1]})
	testkit.Want(t, err == nil && served(t, files, "b.test").DNSNames[0] == "a.test", "others: %v", err)
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// What is wrong with a file is one line that names it.
func TestFaults(t *testing.T) {
	folder, until := t.TempDir(), time.Now().Add(time.Hour)
	a, b := write(t, folder, "a.test", until), write(t, folder, "b.test", until)
	old := write(t, folder, "old.test", time.Now().Add(-time.Minute))
	sealed, text, locked := filepath.Join(folder, "sealed.key"), filepath.Join(folder, "text"), filepath.Join(folder, "locked")
	put(t, sealed, pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("?")}))
	put(t, text, []byte("no PEM"))
	put(t, locked, []byte("?"))
	testkit.Must(t, os.Chmod(locked, 0))
	for what, tc := range map[string]struct {
		pair certs.Pair
		want string
	}{
		"nowhere":   {certs.Pair{Cert: filepath.Join(folder, "no"), Key: a.Key}, "no: no such file"},
		"a folder":  {certs.Pair{Cert: folder, Key: a.Key}, "is no file"},
		"swapped":   {certs.Pair{Cert: a.Key, Key: a.Cert}, a.Key},
		"another":   {certs.Pair{Cert: a.Cert, Key: b.Key}, "is not that of certificate"},
		"encrypted": {certs.Pair{Cert: a.Cert, Key: sealed}, "is encrypted"},
		"text":      {certs.Pair{Cert: text, Key: a.Key}, text},
		"expired":   {old, "has expired at"},
		"locked":    {certs.Pair{Cert: locked, Key: a.Key}, "locked"}, // root may read it, and finds nothing
	} {
		err := certs.Check(certs.Port{Pairs: []certs.Pair{a, tc.pair}})
		testkit.Want(t, err != nil && strings.Contains(err.Error(), tc.want) && !strings.Contains(err.Error(), "\n"),
			"%s: %v, want %q", what, err, tc.want)
	}
}
