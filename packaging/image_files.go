package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io/fs"
	"path"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	// imageUser is the number of the user and of the group that containers run as.
	imageUser = 65532
	// imageFolder is where containers start: a cabrank.yml there is what they run by.
	imageFolder = "etc/cabrank"
)

// imageFiles is the file system of the image: the program, and what it looks for
// elsewhere than in its own file. Names are found by /etc/hosts, then DNS, without an
// nsswitch.conf.
func imageFiles(r *release, p program) []file {
	passwd := fmt.Sprintf("root:x:0:0:root:/root:/sbin/nologin\ncabrank:x:%d:%[1]d:Cabrank:/nonexistent:/sbin/nologin\n", imageUser)
	group := fmt.Sprintf("root:x:0:\ncabrank:x:%d:\n", imageUser)
	files := []file{
		{Name: r.imageProgram(), Mode: 0o755, Content: p.Content},
		{Name: imageFolder, Mode: fs.ModeDir | 0o755},
		{Name: "etc/passwd", Mode: 0o644, Content: []byte(passwd)},
		{Name: "etc/group", Mode: 0o644, Content: []byte(group)},
		{Name: "etc/ssl/certs/ca-certificates.crt", Mode: 0o644, Content: certificates()},
		{Name: "tmp", Mode: fs.ModeDir | fs.ModeSticky | 0o777}, // control socket, sockets of workers
	}
	for _, f := range r.legal() {
		f.Name = "usr/share/doc/" + r.Name + "/" + f.Name
		files = append(files, f)
	}
	return withFolders(files)
}

// withFolders adds the folders that files are in. Docker makes those that a layer does
// not have as it likes.
func withFolders(files []file) []file {
	seen := map[string]bool{".": true}
	for _, f := range files {
		seen[f.Name] = true
	}
	for _, f := range files {
		for folder := path.Dir(f.Name); !seen[folder]; folder = path.Dir(folder) {
			seen[folder] = true
			files = append(files, file{Name: folder, Mode: fs.ModeDir | 0o755})
		}
	}
	return files
}

// certificates returns the roots that Mozilla trusts for TLS. A root that it trusts up to
// a date only is left out: no file of certificates can say that.
// Source: Mozilla's certdata.txt, as the Go project reads it.
func certificates() []byte {
	var out bytes.Buffer
	out.WriteString("# From certdata.txt of Mozilla's NSS, under the Mozilla Public License 2.0\n" +
		"# (https://mozilla.org/MPL/2.0/), by golang.org/x/crypto/x509roots/fallback.\n")
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return out.Bytes()
}
