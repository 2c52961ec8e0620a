package main

import (
	"archive/zip"
	"bytes"
	"hash/crc32"
	"time"

	"github.com/klauspost/compress/flate"
)

// zipArchive packs files as a zip, in their order, with nothing of the machine that made
// it. Sizes stand before each content, as installers that read from a connection want it.
func zipArchive(files []file, at time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		packed, err := deflated(f.Content)
		if err != nil {
			return nil, err
		}
		header := &zip.FileHeader{
			Name: f.Name, Method: zip.Deflate, CRC32: crc32.ChecksumIEEE(f.Content),
			CompressedSize64: uint64(len(packed)), UncompressedSize64: uint64(len(f.Content)),
		}
		header.SetMode(f.Mode)
		header.SetModTime(at) //nolint:staticcheck // CreateRaw, which puts sizes first, reads no other time
		raw, err := w.CreateRaw(header)
		if err != nil {
			return nil, err
		}
		if _, err := raw.Write(packed); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// deflated is content in the form of RFC 1951.
func deflated(content []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, packLevel)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}
