package testbed

import (
	"errors"
	"os"
	"path/filepath"
)

// files is what is done with the file system of control groups; tests have one that
// answers as the kernel does.
type files interface {
	read(name string) (string, error)
	write(name, text string) error
	list(dir string) ([]string, error) // names of folders
	mkdir(dir string) error
	rmdir(dir string) error
}

// machine is the file system of this machine.
type machine struct{}

func (machine) read(name string) (string, error) {
	text, err := os.ReadFile(name)
	return string(text), err
}

// write writes a file that is there: the kernel makes them with the folder.
func (machine) write(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

func (machine) list(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, filepath.Base(e.Name()))
		}
	}
	return names, err
}

func (machine) mkdir(dir string) error { return os.Mkdir(dir, 0o755) }
func (machine) rmdir(dir string) error { return os.Remove(dir) }
