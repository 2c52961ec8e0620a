package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	dockertar "github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// packedImages packs programs that are a few bytes.
func packedImages(t *testing.T) (*release, []artifact) {
	t.Helper()
	r := small()
	r.Version = "1.2.3-rc.1"
	all, err := images(r)
	must(t, err)
	return r, all
}

// unpacked writes what tars have into one folder, as "tar -x" does.
func unpacked(t *testing.T, tars ...artifact) string {
	t.Helper()
	folder := t.TempDir()
	for _, a := range tars {
		r := tar.NewReader(bytes.NewReader(a.Content))
		for {
			header, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			content, readErr := io.ReadAll(r)
			path := filepath.Join(folder, filepath.FromSlash(header.Name))
			must(t, errors.Join(err, readErr, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)))
		}
	}
	return folder
}

// The file of a platform is a whole layout; Docker's older form names the same blobs.
func TestImageIsALayoutAndLoads(t *testing.T) {
	_, all := packedImages(t)
	for _, a := range all[:2] {
		folder := unpacked(t, a)
		index, err := layout.ImageIndexFromPath(folder)
		must(t, err)
		err = validate.Index(index)
		check(t, err == nil, "%s: %v", a.Name, err)
		entries, err := index.IndexManifest()
		need(t, err == nil && len(entries.Manifests) == 1 && entries.Manifests[0].MediaType.IsImage(),
			"%s: the layout has not one image: %v (%v)", a.Name, entries, err)
		names := entries.Manifests[0].Annotations
		if names["org.opencontainers.image.ref.name"] != "1.2.3-rc.1" || !strings.HasSuffix(names["io.containerd.image.name"], "/cabrank:1.2.3-rc.1") {
			t.Errorf("%s: the image has the names %v", a.Name, names)
		}
		img, err := index.Image(entries.Manifests[0].Digest)
		must(t, err)
		docker, err := dockertar.Image(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(a.Content)), nil }, nil)
		must(t, err)
		err = validate.Image(docker)
		check(t, err == nil, "%s, as Docker saves: %v", a.Name, err)
		one, _ := img.ConfigName()
		other, err := docker.ConfigName()
		check(t, one == other, "%s: the image is %v in one form and %v in the other (%v)", a.Name, one, other, err)
	}
}

// All three files in one folder are what registries get.
func TestImagesOfAllPlatformsAreOneLayout(t *testing.T) {
	r, all := packedImages(t)
	var names []string
	for _, a := range all {
		names = append(names, a.Name)
	}
	want := []string{"cabrank-1.2.3-rc.1-image-amd64.tar", "cabrank-1.2.3-rc.1-image-arm64.tar", "cabrank-1.2.3-rc.1-image-index.tar"}
	need(t, slices.Equal(names, want), "the files are %v, want %v", names, want)
	top, err := layout.ImageIndexFromPath(unpacked(t, all...))
	must(t, err)
	must(t, validate.Index(top))
	entries, err := top.IndexManifest()
	need(t, err == nil && len(entries.Manifests) == 1 && entries.Manifests[0].MediaType.IsIndex(),
		"the layout has not one index: %v (%v)", entries, err)
	index, err := top.ImageIndex(entries.Manifests[0].Digest)
	must(t, err)
	manifest, err := index.IndexManifest()
	must(t, err)
	same(t, manifest.Annotations["org.opencontainers.image.version"], r.Version, "the index is of version")
	var of []string
	for _, m := range manifest.Manifests {
		of = append(of, m.Platform.String())
		img, err := index.Image(m.Digest)
		must(t, err)
		checkImage(t, r, m.Platform, img)
	}
	check(t, slices.Equal(of, []string{"linux/amd64", "linux/arm64"}), "the index is of %v", of)
}

// checkImage holds an image to what containers of it rely on.
func checkImage(t *testing.T, r *release, of *v1.Platform, img v1.Image) {
	t.Helper()
	config, err := img.ConfigFile()
	must(t, err)
	check(t, config.Platform().String() == of.String() && config.Created.Equal(r.Date),
		"the image of %v says it is of %v, made at %v", of, config.Platform(), config.Created)
	c := config.Config
	if !slices.Equal(c.Entrypoint, []string{"/usr/local/bin/cabrank"}) || c.User != "65532:65532" || c.WorkingDir != "/etc/cabrank" || len(c.Cmd) > 0 {
		t.Errorf("containers start with %+v", c)
	}
	if c.Labels["org.opencontainers.image.created"] != "2026-01-02T03:04:05Z" || c.Labels["org.opencontainers.image.revision"] != r.Commit {
		t.Errorf("the labels are %v", c.Labels)
	}
	layers, err := img.Layers()
	need(t, err == nil && len(layers) == 1, "%d layers, want one (%v)", len(layers), err)
	content, err := partial.Descriptor(layers[0])
	check(t, err == nil && content.MediaType == "application/vnd.oci.image.layer.v1.tar+gzip", "the layer is %v (%v)", content, err)
	checkLayer(t, r, of, layers[0])
}

// checkLayer looks at the names, owners, times and permissions of all files.
func checkLayer(t *testing.T, r *release, of *v1.Platform, layer v1.Layer) {
	t.Helper()
	modes := map[string]int64{}
	content, err := layer.Uncompressed()
	must(t, err)
	files := tar.NewReader(content)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		must(t, err)
		if _, known := modes[filepath.ToSlash(filepath.Dir(filepath.Clean(header.Name)))]; !known && strings.Contains(strings.TrimSuffix(header.Name, "/"), "/") {
			t.Errorf("%s comes before its folder", header.Name)
		}
		modes[strings.TrimSuffix(header.Name, "/")] = header.Mode
		check(t, header.Uid == 0 && header.Gid == 0 && header.ModTime.Equal(r.Date),
			"%s is of user %d, group %d, from %v", header.Name, header.Uid, header.Gid, header.ModTime)
		if header.Name == r.imageProgram() {
			program, err := io.ReadAll(files)
			check(t, string(program) == "program of "+of.OS+"-"+of.Architecture, "the program is %q (%v)", program, err)
		}
	}
	for name, mode := range map[string]int64{
		r.imageProgram(): 0o755, "tmp": 0o1777, "etc": 0o755, "etc/cabrank": 0o755, "etc/passwd": 0o644, "etc/group": 0o644,
		"etc/ssl/certs/ca-certificates.crt": 0o644, "usr/share/doc/cabrank/LICENSE": 0o644, "usr/share/doc/cabrank/THIRD-PARTY-LICENSES": 0o644,
	} {
		check(t, modes[name] == mode, "%s has the mode %o, want %o", name, modes[name], mode)
	}
}

// The same release gives the same bytes.
func TestImagesAreTheSameTwice(t *testing.T) {
	_, one := packedImages(t)
	_, other := packedImages(t)
	for i := range one {
		check(t, bytes.Equal(one[i].Content, other[i].Content), "%s differs", one[i].Name)
	}
}

// All certificates are read by Go, whose parser is the strict one; among them are those
// that most servers on the internet have.
func TestCertificates(t *testing.T) {
	text := certificates()
	pool := x509.NewCertPool()
	need(t, pool.AppendCertsFromPEM(text), "no certificate can be read")
	count := bytes.Count(text, []byte("-----BEGIN CERTIFICATE-----"))
	if got := len(pool.Subjects()); got != count || count < 100 { //nolint:staticcheck // no pool of the system
		t.Errorf("%d of %d certificates can be read; want 100 or more", got, count)
	}
}
