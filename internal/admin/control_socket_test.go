package admin

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// shortFolder returns a folder with a path short enough for sockets, which
// t.TempDir need not have.
func shortFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "ctl") //nolint:usetesting // see above
	testkit.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

func listenSomewhere(t *testing.T, folder string) *ControlListener {
	t.Helper()
	l, err := ListenControlAuto(folder, 8080)
	testkit.Must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// deadSocket leaves what kill -9 leaves: a socket on which nobody listens.
func deadSocket(t *testing.T, path string) {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	testkit.Must(t, err)
	l.SetUnlinkOnClose(false)
	l.Close()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Only this user can reach the socket, whatever the umask: the folder has mode
// 0700, the socket 0600 from its first moment.
func TestControlSocketIsPrivate(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	folder := filepath.Join(shortFolder(t), "new")
	l := listenSomewhere(t, folder)
	for path, want := range map[string]os.FileMode{
		folder:   os.ModeDir | 0o700,
		l.Path(): os.ModeSocket | 0o600,
	} {
		info, err := os.Lstat(path)
		testkit.Must(t, err)
		testkit.Want(t, info.Mode() == want, "%s has mode %v, want %v", path, info.Mode(), want)
	}
	if want := filepath.Join(folder, "8080.sock"); l.Path() != want {
		t.Errorf("listens on %s, want %s", l.Path(), want)
	}
}

// A folder whose name can be guessed may have been made by somebody else.
func TestControlFolderMustBeOurs(t *testing.T) {
	base := shortFolder(t)
	open, file, link, ours := filepath.Join(base, "open"), filepath.Join(base, "file"), filepath.Join(base, "link"), filepath.Join(base, "ours")
	for _, err := range []error{
		os.Mkdir(open, 0o700), os.Chmod(open, 0o755), os.Mkdir(ours, 0o700), os.Symlink(ours, link), os.WriteFile(file, nil, 0o600),
	} {
		testkit.Must(t, err)
	}
	cases := map[string]string{
		open: "is open to other users (mode 0755)", file: "is no folder", link: "is no folder",
		filepath.Join(base, "a", "b"): "no such file or directory",
	}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(base, "foreign")
		testkit.Must(t, errors.Join(os.Mkdir(foreign, 0o700), os.Chown(foreign, 4711, 4711)))
		cases[foreign] = "belongs to another user (uid 4711)"
	}
	for folder, want := range cases {
		l, err := ListenControlAuto(folder, 1)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), folder) || !strings.Contains(err.Error(), "--control") {
			t.Errorf("%s: got %v, want a line with %q", folder, err, want)
		}
	}
	entries, _ := os.ReadDir(ours)
	testkit.Want(t, len(entries) == 0, "a socket was made behind a symbolic link")
}

// A folder that somebody has chosen may be looked into by others, not written
// to.
func TestControlPathOfOnesOwn(t *testing.T) {
	base := shortFolder(t)
	for name, test := range map[string]struct {
		mode os.FileMode
		says string
	}{
		"readable": {0o755, ""}, "sticky": {0o777 | os.ModeSticky, ""},
		"writable": {0o777, "other users may write to"}, "group": {0o775, "other users may write to"},
	} {
		folder := filepath.Join(base, name)
		testkit.Must(t, errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, test.mode)))
		l, err := ListenControl(filepath.Join(folder, "s"))
		if err == nil {
			l.Close()
		}
		if got := fmt.Sprint(err); (err == nil) != (test.says == "") || !strings.Contains(got, test.says) && err != nil {
			t.Errorf("%s: got %v, want %q", name, err, test.says)
		}
	}
}

// The file that kill -9 leaves is replaced by the next start. Anything else
// stays, above all a socket on which somebody listens.
func TestControlSocketOfAPredecessor(t *testing.T) {
	base := shortFolder(t)
	path := filepath.Join(base, "s")
	deadSocket(t, path)
	first, err := ListenControl(path)
	testkit.Need(t, err == nil, "after a dead predecessor: %v", err)
	_, err = ListenControl(path)
	taken, ok := errors.AsType[*TakenError](err)
	if !ok || runtime.GOOS == "linux" && taken.PID != os.Getpid() {
		t.Errorf("beside a living one: got %v", err)
	}
	if conn, dialErr := net.Dial("unix", path); dialErr != nil {
		t.Errorf("the living one lost its socket: %v", dialErr)
	} else {
		conn.Close()
	}
	first.Close()
	first.Close() // as http.Server does
	testkit.Want(t, !exists(path), "Close has left the file")
	testkit.Must(t, os.WriteFile(path, []byte("mine"), 0o600))
	_, err = ListenControl(path)
	testkit.Want(t, err != nil && strings.Contains(err.Error(), "is there and no socket"), "in place of a file: got %v", err)
	content, _ := os.ReadFile(path)
	testkit.Want(t, string(content) == "mine", "a file that is no socket was touched")
}

// Two cabranks may have the same port, in other network namespaces or by
// SO_REUSEPORT.
func TestControlOfASecondCabrank(t *testing.T) {
	folder := shortFolder(t)
	first, second := listenSomewhere(t, folder), listenSomewhere(t, folder)
	if want := fmt.Sprintf("8080-%d.sock", os.Getpid()); filepath.Base(second.Path()) != want {
		t.Errorf("the second listens on %s, want %s", second.Path(), want)
	}
	if got, want := fmt.Sprint(FindControl([]string{folder, folder})), fmt.Sprint([]string{second.Path(), first.Path()}); got != want {
		t.Errorf("found %v, want %v", got, want)
	}
	first.Close()
	if got, want := fmt.Sprint(FindControl([]string{folder, "/nowhere"})), fmt.Sprint([]string{second.Path()}); got != want {
		t.Errorf("found %v, want %v", got, want)
	}
}

// A runtime folder that is no absolute path counts as none: a command would look
// for it in its own folder.
func TestRelativeRuntimeFolderIsNone(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("XDG_RUNTIME_DIR", ".")
	got := ControlFolders()
	testkit.Want(t, len(got) == 1 && filepath.IsAbs(got[0]), "got %q", got)
}

// The last one that leaves removes the folder that nobody has chosen.
func TestControlFolderIsRemoved(t *testing.T) {
	runtime := shortFolder(t)
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	folder := ControlFolders()[0]
	first, second := listenSomewhere(t, folder), listenSomewhere(t, folder)
	first.Close()
	testkit.Need(t, exists(second.Path()), "the second one lost its socket")
	second.Close()
	testkit.Want(t, !exists(folder), "the folder is left")
	third := listenSomewhere(t, folder)
	third.Close()
}

// Sockets of dead processes go, also those of other ports; nothing else does.
func TestControlFolderIsSwept(t *testing.T) {
	folder := shortFolder(t)
	dead, file := filepath.Join(folder, "1.sock"), filepath.Join(folder, "2.sock")
	deadSocket(t, dead)
	testkit.Must(t, os.WriteFile(file, nil, 0o600))
	living := listenSomewhere(t, folder)
	testkit.Want(t, !exists(dead) && exists(file), "dead socket there: %t, file there: %t", exists(dead), exists(file))
	listenSomewhere(t, folder)
	testkit.Want(t, Listens(living.Path()), "a living one lost its socket")
}

// Of several that start at once on the socket of a dead one, one gets it.
func TestControlSocketIsTakenOnce(t *testing.T) {
	path := filepath.Join(shortFolder(t), "s")
	for range 20 {
		deadSocket(t, path)
		won := make(chan *ControlListener, 8)
		var starts sync.WaitGroup
		for range cap(won) {
			starts.Go(func() {
				l, err := ListenControl(path)
				_, taken := errors.AsType[*TakenError](err)
				testkit.Want(t, err == nil || taken, "%v", err)
				if err == nil {
					won <- l
				}
			})
		}
		starts.Wait()
		testkit.Need(t, len(won) == 1, "%d have the socket", len(won))
		(<-won).Close()
	}
}

// R20: a socket that was handed over stays, and belongs to who has it now.
func TestControlSocketHandedOver(t *testing.T) {
	path := filepath.Join(shortFolder(t), "s")
	old, err := ListenControl(path)
	testkit.Must(t, err)
	file, err := old.File()
	testkit.Must(t, err)
	defer file.Close()
	copied, err := net.FileListener(file)
	testkit.Must(t, err)
	heir, err := InheritControl(copied.(*net.UnixListener))
	testkit.Must(t, err)
	old.Release()
	old.Close()
	testkit.Want(t, Listens(path), "nobody listens after the old one has closed")
	heir.Close()
	testkit.Want(t, !exists(path), "the new one has left the file")
}

// What is at the path now may be another's.
func TestControlCloseRemovesOnlyItsOwn(t *testing.T) {
	path := filepath.Join(shortFolder(t), "s")
	l, err := ListenControl(path)
	testkit.Must(t, err)
	testkit.Must(t, errors.Join(os.Remove(path), os.WriteFile(path, nil, 0o600)))
	l.Close()
	testkit.Want(t, exists(path), "removed a file that it had not made")
}

func TestControlPathThatIsTooLong(t *testing.T) {
	folder := shortFolder(t)
	_, err := ListenControl(filepath.Join(folder, strings.Repeat("x", 100)))
	testkit.Want(t, err != nil && strings.Contains(err.Error(), "100 are allowed"), "got %v", err)
}

// A connection tells whose it is, where the kernel does.
func TestControlPeer(t *testing.T) {
	l := listenSomewhere(t, shortFolder(t))
	client, err := net.Dial("unix", l.Path())
	testkit.Must(t, err)
	defer client.Close()
	server, err := l.Accept()
	testkit.Must(t, err)
	defer server.Close()
	uid, pid, known := peerOf(server.(*net.UnixConn))
	if known != (runtime.GOOS == "linux") || known && (uid != os.Geteuid() || pid != os.Getpid()) {
		t.Errorf("uid %d, pid %d, known %t", uid, pid, known)
	}
}
