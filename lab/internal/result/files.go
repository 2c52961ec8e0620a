package result

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/cabrank/cabrank/lab/internal/traffic"
)

// The files of a run, in one folder.
const (
	RunFile   = "run.json"
	RawFolder = "raw"
)

const (
	mostRun = 32 << 20 // how many bytes of a run.json are read: some thousand blocks
	// mostRecord is the same of a raw record: that of an hour with 100 workers by
	// name in each of its 600 intervals has 2 MB.
	mostRecord = 16 << 20
)

// Save writes run.json into a folder, which is made if it is not there. An older one is
// replaced as a whole, or stays as it is.
func Save(folder string, r *Run) error {
	whole := *r
	whole.Schema = Schema
	whole.Claims = append([]Claim{}, r.Claims...) // [] in place of null
	if err := whole.Check(); err != nil {
		return fmt.Errorf("%s is not written: %w", RunFile, err)
	}
	text, err := json.MarshalIndent(whole, "", " ")
	if err != nil {
		return err
	}
	return Replace(filepath.Join(folder, RunFile), append(text, '\n'))
}

// Read reads a run.json; path is the file, or the folder that it is in.
//
// Errors: one line that begins with the file.
func Read(path string) (*Run, error) {
	path = File(path)
	text, err := ReadFile(path, mostRun)
	if err != nil {
		return nil, err
	}
	var r Run
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s is no result of a run: %w", path, err)
	}
	if err := r.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r, nil
}

// File returns the run.json that a path means: a folder means the one in it.
func File(path string) string {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return filepath.Join(path, RunFile)
	}
	return path
}

// SaveRecord writes the raw record of block number n (from 1 on) into the folder of a
// run, and returns its name for Block.Raw.
func SaveRecord(folder string, n int, r *traffic.Record) (name string, err error) {
	name = filepath.ToSlash(filepath.Join(RawFolder, fmt.Sprintf("%04d.json", n)))
	text, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	return name, Replace(filepath.Join(folder, name), append(text, '\n'))
}

// ReadRecord reads the raw record of a block. It takes some megabytes: let go of one
// before the next is read.
//
// Errors: one line that begins with the file.
func ReadRecord(folder string, b *Block) (*traffic.Record, error) {
	if b.Raw == "" {
		return nil, errors.New("the block has no raw record")
	}
	if !filepath.IsLocal(b.Raw) {
		return nil, fmt.Errorf("raw record %.80q: want a file beside %s", b.Raw, RunFile)
	}
	path := filepath.Join(folder, filepath.FromSlash(b.Raw))
	text, err := ReadFile(path, mostRecord)
	if err != nil {
		return nil, err
	}
	var r traffic.Record
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &r, nil
}

// ReadFile reads a file of so many bytes at most.
//
// Errors: one line that has the file in it.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s: more than %d MiB", path, most>>20)
	}
	return text, nil
}

// Replace writes a file beside its place and moves it there, so that an older one is
// replaced as a whole, or stays as it is. Its folder is made if it is not there.
func Replace(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // results are shown to others
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Chmod(f.Name(), 0o644) //nolint:gosec // results are shown to others
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// MakeFolder makes a folder for results, with those above it, and tries whether a file can
// be written: it is too late for that when something has run. made are those that were not
// there, the innermost first.
func MakeFolder(path string) (made []string, err error) {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil {
			break
		}
		made = append(made, at)
	}
	if err := os.MkdirAll(path, 0o755); err != nil { //nolint:gosec // results are shown to others
		return made, err
	}
	f, err := os.CreateTemp(path, ".try.*")
	if err != nil {
		return made, err
	}
	return made, errors.Join(f.Close(), os.Remove(f.Name()))
}
