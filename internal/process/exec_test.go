package process

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// What is missing is named, not what is there.
func TestExplainExec(t *testing.T) {
	for content, want := range map[string]string{
		"#!/no/such/ruby -w\n":      `the file is there, its interpreter "/no/such/ruby" is not`,
		"#!/bin/sh\r\necho hello\n": `the file is there, its interpreter "/bin/sh\r" is not`,
		"echo hello\n":              "it is no program of this machine; a script needs a first line such as #!/bin/sh",
	} {
		path := filepath.Join(t.TempDir(), "x")
		testkit.Must(t, os.WriteFile(path, []byte(content), 0o700))
		cmd := exec.Command(path)
		err := explainExec(path, cmd.Start())
		testkit.Want(t, err != nil && strings.HasSuffix(err.Error(), want), "%q: %v, want %s", content, err, want)
	}
	plain := filepath.Join(t.TempDir(), "x")
	testkit.Must(t, os.WriteFile(plain, []byte("#!/bin/sh\n"), 0o600))
	for path, want := range map[string]string{
		plain:       "permission denied: it is a file that may not be executed; chmod +x allows it",
		t.TempDir(): "permission denied: it is a folder, no program",
	} {
		err := explainExec(path, exec.Command(path).Start())
		testkit.Want(t, err != nil && strings.HasSuffix(err.Error(), want), "%v, want %s", err, want)
	}
	missing := filepath.Join(t.TempDir(), "missing")
	err := explainExec(missing, exec.Command(missing).Start())
	testkit.Want(t, err != nil && strings.HasSuffix(err.Error(), "missing: no such file or directory"), "a file that is not there: %v", err)
	t.Chdir(t.TempDir())
	folder, _ := os.Getwd()
	const relative = "bin/worker"
	if err := explainExec(relative, exec.Command(relative).Start()); err == nil || !strings.HasSuffix(err.Error(), "bin/worker: no such file or directory in "+folder) {
		t.Errorf("a file that is not there: %v", err)
	}
	noNull := &fs.PathError{Op: "open", Path: os.DevNull, Err: syscall.ENOENT}
	err = explainExec("/bin/sh", noNull)
	testkit.Want(t, errors.Is(err, noNull) && !strings.Contains(err.Error(), "loader"), "without %s: %v", os.DevNull, err)
	for limit, want := range map[syscall.Errno]string{
		syscall.EAGAIN: "no more processes may be started, see ulimit -u and the pids limit of the container",
		syscall.EMFILE: "no more may be opened by this process, see ulimit -n",
	} {
		err = explainExec(missing, limit)
		testkit.Want(t, errors.Is(err, limit) && strings.HasSuffix(err.Error(), want), "%v, want %s", err, want)
	}
	err = explainExec(missing, nil)
	testkit.Want(t, err == nil, "no error: %v", err)
}
