package shard

import (
	"net"
	"sync/atomic"
)

const (
	// streamBuffer is the largest read or write of a connection that is not a raw socket:
	// as much as a TLS record holds, so that progress is seen and no write becomes two.
	streamBuffer = 16 << 10
	// idleBuffer is the size of such a connection's buffer while it is idle: it cannot wait
	// for bytes without a buffer.
	idleBuffer = 512
)

// streamDriver drives a link over any net.Conn (TLS, bytes already sniffed, an
// in-memory pipe), outside the lock: one goroutine reads, and another one writes while it
// has output.
//
// Concurrency: writing and half are guarded by the lock.
type streamDriver struct {
	link    *Link
	nc      net.Conn
	writing bool // a goroutine is writing
	half    bool // half-close after the output

	written atomic.Uint64
}

func newStreamDriver(l *Link, nc net.Conn) *streamDriver { return &streamDriver{link: l, nc: nc} }

func (d *streamDriver) readLoop() {
	begin := make([]byte, idleBuffer)
	for {
		n, err := d.nc.Read(begin)
		if !d.took(begin[:n], err) {
			return
		}
		if n == len(begin) && !d.readMuch() {
			return
		}
	}
}

// readMuch reads with a large buffer until little comes.
func (d *streamDriver) readMuch() (more bool) {
	buffers := &d.link.shard.streams
	buf, _ := buffers.Get().(*[streamBuffer]byte)
	if buf == nil {
		buf = new([streamBuffer]byte)
	}
	defer buffers.Put(buf)
	for {
		n, err := d.nc.Read(buf[:])
		if !d.took(buf[:n], err) {
			return false
		}
		if n <= idleBuffer {
			return true
		}
	}
}

// took hands in the bytes of a read, and reports whether the link is open.
func (d *streamDriver) took(p []byte, err error) (open bool) {
	s := d.link.shard
	s.Lock()
	defer s.Unlock()
	if len(p) > 0 && !d.link.closed {
		d.link.feed(p)
	}
	if err != nil {
		d.link.Close(err)
	}
	return !d.link.closed
}

// writeAll writes until no output is left.
func (d *streamDriver) writeAll() {
	s := d.link.shard
	for {
		s.Lock()
		buf, off := d.take()
		half := buf == nil && d.half && !d.link.closed
		s.Unlock()
		if half {
			d.closeWrite()
		}
		if buf == nil {
			return
		}
		err := d.write(buf[off:])
		s.Lock()
		d.link.Conn.Returned(buf)
		if err != nil {
			d.writing = false
			d.link.writeFailed(err, s.Now())
			s.Unlock()
			return
		}
		d.link.afterFlush(s.Now())
		s.Unlock()
	}
}

// take takes the output to write; without output the goroutine ends. The caller holds the
// lock.
func (d *streamDriver) take() (buf []byte, off int) {
	if !d.link.closed {
		buf, off = d.link.Conn.Take()
	}
	d.writing = buf != nil
	return buf, off
}

func (d *streamDriver) write(p []byte) error {
	for len(p) > 0 {
		n, err := d.nc.Write(p[:min(len(p), streamBuffer)])
		if err != nil {
			return err
		}
		d.written.Add(uint64(n))
		p = p[n:]
	}
	return nil
}

// signal starts the writing goroutine, unless it runs. The caller holds the lock.
func (d *streamDriver) signal() {
	if !d.writing {
		d.writing = true
		go d.writeAll() // ends when all is written, or with the connection
	}
}

func (d *streamDriver) closeWrite() {
	if c, ok := d.nc.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite() // the peer may be gone already
		return
	}
	s := d.link.shard
	s.Lock()
	d.link.Close(d.link.reason) // a transport that cannot half-close ends here
	s.Unlock()
}

func (d *streamDriver) flush()           { d.signal() }
func (d *streamDriver) progress() uint64 { return d.written.Load() }

func (d *streamDriver) finish() {
	d.half = true
	d.signal()
}

func (d *streamDriver) close() {
	go func() { _ = d.nc.Close() }() // TLS may wait for its last record
}

// detach returns the connection. Its reader, which feeds the engine right now, ends when it
// sees that the link has closed.
func (d *streamDriver) detach() (net.Conn, error) { return d.nc, nil } //nolint:unparam // that of sockets can fail
