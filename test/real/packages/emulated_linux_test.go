//go:build real || soak

package packages_test

import (
	"bytes"
	"debug/elf"
	"io/fs"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
	"github.com/cabrank/cabrank/test/real/harness"
)

const (
	emulator = "/usr/bin/qemu-aarch64-static"
	// anyUser is one more than the last user that images and packages have.
	anyUser = 65536
)

// Every package for linux/arm64 has the same program in it, and that works: in the image,
// which has nothing else.
func TestLinuxOnARM64(t *testing.T) {
	if runtime.GOARCH == "arm64" {
		t.Skip("the other tests have run it")
	}
	first, of := []byte(nil), ""
	for _, file := range packagesForARM64(t) {
		program := testkit.ReadFile(t, programIn(t, file))
		if first == nil {
			first, of = program, file
		}
		testkit.Want(t, bytes.Equal(first, program), "%s and %s have not the same program", filepath.Base(of), filepath.Base(file))
	}
	checkEmulator(t)
	i := unpackImage(t, "arm64")
	works(t, func(args ...string) *exec.Cmd { return emulated(i.command([]string{"dev", "proc"}, args...)) })
}

// packagesForARM64 are the files of dist/ that have the program for Linux on arm64.
func packagesForARM64(t *testing.T) (found []string) {
	t.Helper()
	for _, name := range harness.FilesIn(t, filepath.Join(harness.Root(t), "dist")) {
		if strings.Contains(name, "cabrank-lab") {
			continue // another program
		}
		if (strings.Contains(name, "arm64") || strings.Contains(name, "aarch64")) && !strings.Contains(name, "darwin") && !strings.Contains(name, "macosx") {
			found = append(found, dist(t, name))
		}
	}
	if len(found) < 6 {
		t.Fatalf("%d packages for linux/arm64, want an archive, a gem, a wheel, an npm package, a Debian package and an image: %q", len(found), found)
	}
	return found
}

// programIn unpacks a package, and returns the only program for arm64 in it.
func programIn(t *testing.T, file string) (program string) {
	t.Helper()
	folder := t.TempDir()
	script := map[string]string{
		".gz":  `tar -xzf "$1" -C "$2"`,
		".tgz": `tar -xzf "$1" -C "$2"`,
		".gem": `tar -xOf "$1" data.tar.gz | tar -xz -C "$2"`,
		".whl": `python3 -m zipfile -e "$1" "$2"`,
		".deb": `dpkg-deb -x "$1" "$2"`,
	}[filepath.Ext(file)]
	switch {
	case filepath.Ext(file) == ".tar":
		folder = unpackImage(t, "arm64").root
	case script == "":
		t.Fatalf("%s: how is that unpacked?", file)
	default:
		must(t, exec.Command("sh", "-ec", script, "sh", file, folder))
	}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		binary, notELF := elf.Open(path)
		if notELF != nil {
			return nil // one of the other files
		}
		defer binary.Close()
		testkit.Want(t, binary.Machine == elf.EM_AARCH64 && program == "", "%s has %s (%v) beside %q", file, path, binary.Machine, program)
		program = path
		return nil
	})
	testkit.Need(t, err == nil && program != "", "no program in %s (%v)", file, err)
	return program
}

// emulation has the kernel start every program for arm64 by the emulator $1, those that
// the emulated one starts, too; then it becomes the rest of its arguments. The kernel
// keeps that to one namespace of users, and opens the emulator at once (F), so that it
// is found from another root.
// Source: the kernel's admin-guide/binfmt-misc; the magic numbers are those of ELF, 64
// bits, least significant byte first, ET_EXEC or ET_DYN, EM_AARCH64.
const emulation = `mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
printf %s ':aarch64:M::\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00:\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff:'"$1"':F' >/proc/sys/fs/binfmt_misc/register
shift
exec "$@"`

// emulated is a command of another processor, for this one. It stays one process.
func emulated(cmd *exec.Cmd) *exec.Cmd {
	wrapped := exec.Command("/bin/sh", append([]string{"-ec", emulation, "sh", emulator}, cmd.Args...)...)
	wrapped.Dir, wrapped.Env = cmd.Dir, cmd.Env
	users := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: anyUser}}
	wrapped.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: users, GidMappings: users, GidMappingsEnableSetgroups: true,
	}
	return wrapped
}

// checkEmulator skips a test where the kernel is older than 6.7, whose binfmt_misc is one
// for the whole machine.
func checkEmulator(t *testing.T) {
	t.Helper()
	harness.Built(t, emulator, "scripts/install-deps.sh workers")
	if out, err := emulated(exec.Command("true")).CombinedOutput(); err != nil {
		t.Skipf("this machine gives a namespace no binfmt_misc of its own (Linux 6.7, root): %v: %s", err, out)
	}
}
