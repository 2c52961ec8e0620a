package connectcaller

import (
	"io"
	"sync"
)

// held is the body of a request that may be sent again: net/http closes bodies also where it
// has sent nothing of them.
//
// Life: made for a request; again between two tries; release when the last one is over.
// Concurrency: net/http reads and closes it in goroutines of its own.
type held struct {
	io.ReadCloser

	mu                     sync.Mutex
	read, closed, released bool
}

func (h *held) Read(p []byte) (int, error) {
	h.mu.Lock()
	h.read = true
	body := h.ReadCloser
	h.mu.Unlock()
	return body.Read(p)
}

// Close is put off while another try may come.
func (h *held) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.read || h.released {
		return h.ReadCloser.Close()
	}
	return nil
}

// again makes the body ready for another try, and reports whether it is whole: nothing was
// read, or anew, which may be nil, gives another.
func (h *held) again(anew func() (io.ReadCloser, error)) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.read && anew != nil {
		body, err := anew()
		if err != nil {
			return false
		}
		h.ReadCloser, h.read = body, false
	}
	h.closed = false
	return !h.read
}

func (h *held) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.released = true
	if h.closed && !h.read {
		_ = h.ReadCloser.Close()
	}
}
