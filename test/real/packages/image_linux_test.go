//go:build real || soak

package packages_test

import (
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

// The image, as the kernel runs it: its files, its user, its environment, in a root of
// its own. Kubernetes and Docker give every container /dev and /proc. What needs less
// has less here.
func TestImage(t *testing.T) {
	i := unpackImage(t, runtime.GOARCH)
	harness.StartCommand(t, i.command(nil, "version")).WantExit(harness.Patience, 0, version(t))
	for _, mounts := range [][]string{{"dev"}, {"dev", "proc"}} {
		t.Run(strings.Join(mounts, " and "), func(t *testing.T) {
			works(t, func(args ...string) *exec.Cmd { return i.command(mounts, args...) })
			harness.WantEmpty(t, filepath.Join(i.root, "tmp"))
		})
	}
}

// What "COPY --from" takes into an image of another kind needs none of the other files.
func TestProgramOfTheImageAlone(t *testing.T) {
	program := unpackImage(t, runtime.GOARCH).root + "/usr/local/bin/cabrank"
	works(t, func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = t.TempDir(), []string{"PATH=/usr/bin:/bin"}
		return cmd
	})
}

// `docker run cabrank:VERSION` says how it is used, and runs by a file where one is.
func TestImageWithoutArguments(t *testing.T) {
	i := unpackImage(t, runtime.GOARCH)
	harness.StartCommand(t, i.command([]string{"dev", "proc"})).WantExit(harness.Patience, 2, "no file to run by")
	file := filepath.Join(i.root, i.config.WorkingDir, "cabrank.yml")
	text := "server: {host: 127.0.0.1, port: 0}\nprobes: {enabled: false}\nmetrics: {enabled: false}\nupstreams: 127.0.0.1:1\n"
	testkit.Must(t, os.WriteFile(file, []byte(text), 0o644))
	c := harness.Cabrank{Process: harness.StartCommand(t, i.command([]string{"dev", "proc"}))}
	c.Listening("listening")
	c.Stop()
}

// Programs in the image trust the servers that its file of certificates has the roots of.
func TestImageTrustsItsCertificates(t *testing.T) {
	i := unpackImageOf(t, "cabrank-lab", runtime.GOARCH)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.EnableHTTP2, server.Config.ErrorLog = true, log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	const doubt = "certificate signed by unknown authority"
	call := func() string {
		p := harness.StartCommand(t, i.command([]string{"dev"}, "load", server.Listener.Addr().String(), "a.B/C", "--tls", "--data", "{}", "--callers", "1", "--duration", "1s"))
		p.ExitCode(harness.Patience)
		return p.Log()
	}
	testkit.Says(t, call(), doubt)
	name := i.root + "/etc/ssl/certs/ca-certificates.crt"
	trusted := testkit.ReadFile(t, name)
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	testkit.Must(t, os.WriteFile(name, append(trusted, root...), 0o644))
	testkit.Says(t, call(), "no reflection")
}

// anImage is one of dist/, unpacked.
type anImage struct {
	root   string // folder with all files of its layers
	config image  // as the image says
}

// unpackImage unpacks the image of an architecture by way of the OCI layout: the tests of
// docs/install.md go by the other way, manifest.json.
// Source: OCI image-spec, image-layout.md.
func unpackImage(t *testing.T, arch string) anImage {
	t.Helper()
	return unpackImageOf(t, "cabrank", arch)
}

func unpackImageOf(t *testing.T, program, arch string) anImage {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("images have files of several users and are run by chroot, which need root, as in `make test`")
	}
	folder := harness.ShortTempDir(t)
	untar(t, dist(t, program+"-[0-9]*-image-"+arch+".tar"), folder)
	type descriptor struct {
		Digest string `json:"digest"`
	}
	var (
		index    struct{ Manifests []descriptor }
		manifest struct {
			Config descriptor
			Layers []descriptor
		}
		config struct{ Config image }
	)
	blob := func(d descriptor) string {
		return filepath.Join(folder, "blobs", strings.ReplaceAll(d.Digest, ":", "/"))
	}
	err := readJSON(filepath.Join(folder, "index.json"), &index)
	if err == nil && len(index.Manifests) != 1 {
		err = errors.New("the layout has not one image")
	}
	if err == nil {
		err = readJSON(blob(index.Manifests[0]), &manifest)
	}
	if err == nil {
		err = readJSON(blob(manifest.Config), &config)
	}
	testkit.Must(t, err)
	i := anImage{root: filepath.Join(folder, "root"), config: config.Config}
	testkit.Must(t, os.MkdirAll(i.root, 0o755))
	if err := os.Chmod(folder, 0o711); err != nil { // for the user of the image
		t.Fatal(err)
	}
	for _, layer := range manifest.Layers {
		untar(t, blob(layer), i.root)
	}
	return i
}

// untar unpacks as root does: with owners and permissions.
func untar(t *testing.T, file, folder string) {
	t.Helper()
	must(t, exec.Command("tar", "-xpf", file, "-C", folder))
}

// enterImage runs what is in the root $1, with the folders $2 of this machine mounted
// there, as the user and group $3 in the folder $4. It stays one process.
const enterImage = `root=$1 mounts=$2 user=$3 folder=$4
shift 4
for folder_there in $mounts; do mkdir -p "$root/$folder_there"; mount --rbind "/$folder_there" "$root/$folder_there"; done
exec unshare --root="$root" --wd="$folder" --setuid="${user%:*}" --setgid="${user#*:}" "$@"`

// command is a container's first process, without a namespace of processes.
func (i anImage) command(mounts []string, args ...string) *exec.Cmd {
	line := []string{"--mount", "sh", "-ec", enterImage, "sh", i.root, strings.Join(mounts, " "), i.config.User, i.config.WorkingDir}
	cmd := exec.Command("/usr/bin/unshare", slices.Concat(line, i.config.Entrypoint, args)...)
	cmd.Dir, cmd.Env = "/", slices.Concat(i.config.Env, []string{"HOME=/nonexistent"})
	return cmd
}
