package grpcweb

import (
	"encoding/base64"
	"errors"
	"io"

	"github.com/cabrank/cabrank/internal/web/webcall"
)

// errText is returned for a body that is no base64.
const errText = webcall.FaultError("the body is not base64")

// textReader reads base64 of any number of pieces, each with its own padding.
type textReader struct {
	from io.Reader
	raw  [4 << 10]byte
	have int    // of raw
	text []byte // decoded, of out
	out  [3 << 10]byte
	err  error // of from
}

// Read implements io.Reader. Errors: errText.
func (t *textReader) Read(p []byte) (int, error) {
	for len(t.text) == 0 {
		if t.err != nil {
			if t.have > 0 && errors.Is(t.err, io.EOF) {
				return 0, errText
			}
			return 0, t.err
		}
		var n int
		n, t.err = t.from.Read(t.raw[t.have:])
		t.have += n
		if err := t.decode(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.text)
	t.text = t.text[n:]
	return n, nil
}

// decode decodes the groups of four letters that are there. Padding ends a piece.
func (t *textReader) decode() error {
	out, at := 0, 0
	for ; t.have-at >= 4; at += 4 {
		n, err := base64.StdEncoding.Decode(t.out[out:], t.raw[at:at+4])
		if err != nil {
			return errText
		}
		out += n
	}
	t.have = copy(t.raw[:], t.raw[at:t.have])
	t.text = t.out[:out]
	return nil
}
