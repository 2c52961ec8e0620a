package h2

import "golang.org/x/net/http2/hpack"

type appendWriter struct{ buf []byte }

func (w *appendWriter) Write(p []byte) (int, error) {
	w.buf = append(w.buf, p...)
	return len(p), nil
}

// appendHuffmanDecoded appends the decoded form of a Huffman string.
func appendHuffmanDecoded(dst, src []byte) ([]byte, CompressionError) {
	w := appendWriter{dst}
	if _, err := hpack.HuffmanDecode(&w, src); err != nil {
		return dst, CompressionBadHuffman
	}
	return w.buf, 0
}
