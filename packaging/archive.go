package main

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// file is one file or folder of a package. Its owner is root, its time that of the
// release.
type file struct {
	Name    string      // slash-separated, without a slash at either end
	Mode    fs.FileMode // permissions; fs.ModeDir for a folder, fs.ModeSticky
	Content []byte
}

// header is what a tar says of the file.
func (f file) header(at time.Time) *tar.Header {
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: f.Name, Size: int64(len(f.Content)), Mode: int64(f.Mode.Perm()),
		ModTime: at, Format: tar.FormatUSTAR,
	}
	if f.Mode.IsDir() {
		header.Typeflag, header.Name = tar.TypeDir, f.Name+"/"
	}
	if f.Mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	return header
}

// tarball packs files as a tar of one form: sorted by name, in the old format that all
// tools read, with nothing of the machine that made it.
func tarball(files []file, at time.Time) ([]byte, error) {
	files = slices.SortedFunc(slices.Values(files), func(a, b file) int { return strings.Compare(a.Name, b.Name) })
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		if err := w.WriteHeader(f.header(at)); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.Content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// packLevel is that of klauspost/compress for gzip and zip. Of a program it makes what the
// standard library makes at its best, in a fifth of the time: 8.81 MB in 0.6 s, not 2.5.
// Level 9 takes 2.2 s for 8.78 MB.
const packLevel = 8

// zipped is content as gzip packs it, without a name or a time.
func zipped(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, packLevel)
	if err != nil {
		return nil, err
	}
	w.ModTime = time.Unix(0, 0) // which stands for none: RFC 1952, section 2.3.1
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}

// tarGz is a tarball, zipped.
func tarGz(files []file, at time.Time) ([]byte, error) {
	content, err := tarball(files, at)
	if err != nil {
		return nil, err
	}
	return zipped(content)
}
