package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/distribution/reference"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	dockertar "github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// imageProgram is the path of the program in its image, for which "COPY --from" asks.
func (r *release) imageProgram() string { return "usr/local/bin/" + r.Name }

// images is for containers: an image for each Linux, and the index that makes them one.
//
// Shape: each file is a tar of an OCI layout. That of an image has a manifest.json, too,
// so that a Docker without the image store of containerd loads it. That of the index has
// nothing but the index: unpacked over the others it completes a layout of all platforms,
// which is what registries get.
// Source: OCI image-spec, image-layout.md; Docker's Image Specification, v1.2.
func images(r *release) ([]artifact, error) {
	var all []artifact
	index := mutate.Annotations(empty.Index, imageLabels(r)).(v1.ImageIndex) //nolint:forcetypeassert // says its documentation
	for _, p := range r.Programs {
		if p.OS != "linux" {
			continue
		}
		img, err := image(r, p)
		if err != nil {
			return nil, fmt.Errorf("image of %s: %w", p, err)
		}
		packed, err := imageTar(r, p.Arch, img)
		if err != nil {
			return nil, fmt.Errorf("image of %s: %w", p, err)
		}
		all = append(all, packed)
		platform := v1.Descriptor{Platform: &v1.Platform{OS: p.OS, Architecture: p.Arch}}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: platform})
	}
	content, err := index.RawManifest()
	if err != nil {
		return nil, err
	}
	packed, err := layoutTar(r, "index", index, blob(content))
	return append(all, packed), err
}

// image is one layer, and what containers of it start with.
func image(r *release, p program) (v1.Image, error) {
	content, err := tarGz(imageFiles(r, p), r.Date)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }
	layer, err := dockertar.LayerFromOpener(open, dockertar.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.ConfigFile(img, &v1.ConfigFile{
		OS: p.OS, Architecture: p.Arch, Author: authors, Created: v1.Time{Time: r.Date}, Config: imageConfig(r),
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	history := v1.History{Created: v1.Time{Time: r.Date}, CreatedBy: "make packages"}
	return mutate.Append(img, mutate.Addendum{Layer: layer, History: history})
}

// imageConfig is what containers start with. There is no command: without arguments it is
// a cabrank without a command, which runs by a cabrank.yml in the working directory or,
// if nobody has mounted one, says how it is used.
func imageConfig(r *release) v1.Config {
	none := struct{}{}
	if r.Name != service().Name { // it serves nobody, and writes where it may
		return v1.Config{Entrypoint: []string{"/" + r.imageProgram()}, User: fmt.Sprintf("%d:%[1]d", imageUser), WorkingDir: "/tmp", Labels: imageLabels(r)}
	}
	return v1.Config{
		Entrypoint: []string{"/" + r.imageProgram()},
		Env:        []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		// As a number, by which Kubernetes can tell that it is not root.
		User:         fmt.Sprintf("%d:%[1]d", imageUser),
		WorkingDir:   "/" + imageFolder,
		ExposedPorts: map[string]struct{}{"8080/tcp": none, "5555/tcp": none, "9394/tcp": none},
		Labels:       imageLabels(r),
	}
}

// imageLabels says what the image is, also to registries.
// Source: OCI image-spec, annotations.md.
func imageLabels(r *release) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title": r.Name, prefix + "description": r.Summary,
		prefix + "url": homepage, prefix + "source": homepage, prefix + "documentation": homepage + "/tree/main/docs",
		prefix + "authors": authors, prefix + "licenses": license,
		prefix + "version": r.Version, prefix + "revision": r.Commit, prefix + "created": r.Date.Format(time.RFC3339),
	}
}

// imageTar packs an image.
func imageTar(r *release, name string, img v1.Image) (artifact, error) {
	config, err := img.RawConfigFile()
	if err != nil {
		return artifact{}, err
	}
	manifest, err := img.RawManifest()
	if err != nil {
		return artifact{}, err
	}
	blobs := []file{blob(config), blob(manifest)}
	layers, err := img.Layers()
	if err != nil {
		return artifact{}, err
	}
	docker := dockertar.Descriptor{Config: blobs[0].Name, RepoTags: []string{imageTag(r)}}
	for _, layer := range layers {
		compressed, err := layer.Compressed()
		if err != nil {
			return artifact{}, err
		}
		content, err := io.ReadAll(compressed)
		if err != nil {
			return artifact{}, err
		}
		blobs = append(blobs, blob(content))
		docker.Layers = append(docker.Layers, blobs[len(blobs)-1].Name)
	}
	content, err := json.Marshal(dockertar.Manifest{docker})
	if err != nil {
		return artifact{}, err
	}
	return layoutTar(r, name, img, append(blobs, file{Name: "manifest.json", Mode: 0o644, Content: content})...)
}

// layoutTar packs an OCI layout whose only entry is an image or an index, under the
// name by which "docker load" and "podman load" then know it.
func layoutTar(r *release, name string, entry mutate.Appendable, files ...file) (artifact, error) {
	full, err := reference.ParseNormalizedNamed(imageTag(r))
	if err != nil {
		return artifact{}, err
	}
	top := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: entry, Descriptor: v1.Descriptor{
		Annotations: map[string]string{
			"io.containerd.image.name":          full.String(),
			"org.opencontainers.image.ref.name": r.Version,
		},
	}})
	index, err := top.RawManifest()
	if err != nil {
		return artifact{}, err
	}
	files = append(files,
		file{Name: "index.json", Mode: 0o644, Content: index},
		file{Name: "oci-layout", Mode: 0o644, Content: []byte(`{"imageLayoutVersion":"1.0.0"}`)})
	content, err := tarball(files, r.Date)
	return artifact{Name: r.Name + "-" + r.Version + "-image-" + name + ".tar", Content: content}, err
}

// imageTag is the name of the image on a machine that has loaded it.
func imageTag(r *release) string { return r.Name + ":" + r.Version }

// blob is a file of a layout, which has the name of its content.
func blob(content []byte) file {
	return file{Name: fmt.Sprintf("blobs/sha256/%x", sha256.Sum256(content)), Mode: 0o644, Content: content}
}
