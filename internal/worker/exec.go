package worker

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

// maxFirstLine is what the kernel reads of a script to find its interpreter
// (execve(2)).
const maxFirstLine = 256

// explainExec says what the kernel leaves out of an error of exec: what is wrong with a
// file that is there.
func explainExec(path string, err error) error {
	switch {
	case ofInput(err): // the file to run was not looked at
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
	// A file that cannot be read tells nothing.
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

// ofInput reports whether it is /dev/null that is missing or may not be opened.
func ofInput(err error) bool {
	file, ok := errors.AsType[*fs.PathError](err)
	return ok && file.Path == os.DevNull && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission))
}

// explainMissing says of a file that is not there from where on it was looked for.
func explainMissing(path string, err error) error {
	folder, wdErr := os.Getwd()
	if filepath.IsAbs(path) || wdErr != nil {
		return err
	}
	return fmt.Errorf("%w in %s", err, folder)
}

// explainLimit says which limit it is that does not let a process be started.
func explainLimit(err error) error {
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("%w: no more processes may be started, see ulimit -u and the pids limit of the container", err)
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: no more may be opened by this process, see ulimit -n", err)
	}
	return err
}

// explainDenied tells a folder and a file without the right from what nobody may reach.
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
