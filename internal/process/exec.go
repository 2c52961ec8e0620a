package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxFirstLine is how many bytes of a script the kernel reads to find its interpreter
// (execve(2)).
const maxFirstLine = 256

// explainExec adds what an error of exec leaves out: what is wrong with a file that
// exists.
func explainExec(path string, err error) error {
	switch {
	case ofInput(err): // exec has not looked at the file yet
		return fmt.Errorf("%w: every process gets it as its input, and a container has to have it", err)
	case errors.Is(err, syscall.ENOEXEC):
		return fmt.Errorf("%w: it is no program of this machine; a script needs a first line such as #!/bin/sh", err)
	case errors.Is(err, fs.ErrPermission):
		return explainDenied(path, err)
	case !errors.Is(err, fs.ErrNotExist):
		return explainLimit(err)
	}
	file, openErr := os.Open(path)
	if openErr != nil {
		return explainMissing(path, err)
	}
	defer file.Close()
	// From a file that cannot be read first is empty.
	first, _ := bufio.NewReader(io.LimitReader(file, maxFirstLine)).ReadString('\n')
	if interpreter, ok := strings.CutPrefix(first, "#!"); ok {
		// A \r is part of the name, which people do not see in their editors.
		words := strings.FieldsFunc(interpreter, func(r rune) bool { return r == ' ' || r == '\t' || r == '\n' })
		if len(words) > 0 {
			return fmt.Errorf("%w: the file is there, its interpreter %q is not", err, words[0])
		}
	}
	return fmt.Errorf("%w: the file is there, the loader that it was linked for is not", err)
}

// ofInput reports whether the error is that /dev/null is missing or may not be opened.
func ofInput(err error) bool {
	file, ok := errors.AsType[*fs.PathError](err)
	return ok && file.Path == os.DevNull && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission))
}

// explainMissing adds the folder to which the path of a missing file is relative.
func explainMissing(path string, err error) error {
	folder, wdErr := os.Getwd()
	if filepath.IsAbs(path) || wdErr != nil {
		return err
	}
	return fmt.Errorf("%w in %s", err, folder)
}

// explainLimit adds which limit keeps a process from being started.
func explainLimit(err error) error {
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("%w: no more processes may be started, see ulimit -u and the pids limit of the container", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: no more may be opened by this process, see ulimit -n", err)
	}
	return err
}

// explainDenied adds whether the path is a folder, or a file without the right to be
// executed.
func explainDenied(path string, err error) error {
	info, statErr := os.Stat(path)
	switch {
	case statErr != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%w: it is a folder, no program", err)
	case info.Mode().Perm()&0o111 == 0:
		return fmt.Errorf("%w: it is a file that may not be executed; chmod +x allows it", err)
	}
	return err
}
