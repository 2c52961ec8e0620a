package certs_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/certs"
	"github.com/cabrank/cabrank/internal/testkit"
)

// Who connects goes by the files as they are at that moment. Those that cannot be used are
// said once, and what was there before holds; what is wrong at the beginning is one line.
func TestPeers(t *testing.T) {
	folder, until := t.TempDir(), time.Now().Add(time.Hour)
	ca, own := write(t, folder, "ca.test", until), write(t, folder, "own.test", until)
	var log lines
	peers, err := certs.NewPeers(certs.Peer{CA: ca.Cert, Cert: own.Cert, Key: own.Key}, slog.New(slog.NewTextHandler(&log, nil)))
	testkit.Must(t, err)
	before := peers.Config("a.test.")
	if before.ServerName != "a.test" || len(before.Certificates) != 1 || before.NextProtos[0] != "h2" || before.InsecureSkipVerify {
		t.Errorf("%+v", before)
	}
	write(t, folder, "ca.test", until)
	write(t, folder, "own.test", until.Add(time.Hour))
	after := peers.Config("a.test")
	testkit.Want(t, !after.RootCAs.Equal(before.RootCAs) && !after.Certificates[0].Leaf.Equal(before.Certificates[0].Leaf),
		"files have changed, and nothing else")
	left := peers.Expires()[own.Cert]
	testkit.Want(t, left >= 90*time.Minute, "it expires in %v", left)
	put(t, own.Key, []byte("half"))
	for range 3 {
		testkit.Want(t, peers.Config("a.test").RootCAs.Equal(after.RootCAs), "what was there before is gone")
	}
	testkit.Equal(t, strings.Count(log.text(), "those of before stay"), 1, "times said, in\n%s", log.text())
	err = peers.Replace(certs.Peer{Name: "b.test"})
	testkit.Want(t, err == nil && peers.Config("a.test").ServerName == "b.test" && len(peers.Expires()) == 0, "another: %v", err)
	empty := folder + "/empty"
	testkit.Must(t, os.WriteFile(empty, nil, 0o600))
	for want, p := range map[string]certs.Peer{
		"ca " + folder + "/no: no such file": {CA: folder + "/no"},
		"has no certificate in PEM":          {CA: empty},
		"own.test.key":                       {Cert: own.Cert, Key: own.Key},
	} {
		err = p.Check()
		testkit.Want(t, err != nil && strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "\n"), "%v, want %q", err, want)
	}
}
