package shard

import (
	"net"
	"sync/atomic"
)

// streamBuffer is the read buffer of a connection that is not a raw socket, and
// the most that is handed to it in one write: as much as a TLS record holds, so
// that progress is seen and no write becomes two.
const streamBuffer = 16 << 10

// streamDriver drives a link over any net.Conn (TLS, bytes already sniffed, an
// in-memory pipe): one goroutine reads and one writes, both outside the lock.
type streamDriver struct {
	link *Link
	nc   net.Conn
	work chan struct{} // one token: there is output, or the link has closed
	half bool          // half-close once the output is gone

	written atomic.Uint64
}

func newStreamDriver(l *Link, nc net.Conn) *streamDriver {
	return &streamDriver{link: l, nc: nc, work: make(chan struct{}, 1)}
}

func (d *streamDriver) readLoop() {
	s := d.link.shard
	buf := make([]byte, streamBuffer)
	for {
		n, err := d.nc.Read(buf)
		s.Lock()
		if n > 0 && !d.link.closed {
			d.link.feed(buf[:n])
		}
		if err != nil {
			d.link.Close(err)
		}
		closed := d.link.closed
		s.Unlock()
		if closed {
			return
		}
	}
}

func (d *streamDriver) writeLoop() {
	s := d.link.shard
	for range d.work {
		for {
			s.Lock()
			if d.link.closed {
				s.Unlock()
				return
			}
			buf, off := d.link.Conn.Take()
			half := d.half
			s.Unlock()
			if buf == nil {
				if half {
					d.closeWrite()
				}
				break
			}
			err := d.write(buf[off:])
			s.Lock()
			d.link.Conn.Returned(buf)
			if err != nil {
				d.link.writeFailed(err, s.Now())
				s.Unlock()
				return
			}
			d.link.afterFlush(s.Now())
			s.Unlock()
		}
	}
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

func (d *streamDriver) signal() {
	select {
	case d.work <- struct{}{}:
	default:
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
	d.signal()
}

// detach has the writer end. The reader is the one who feeds the engine: it ends
// when it sees that the link has closed.
func (d *streamDriver) detach() (net.Conn, error) { //nolint:unparam // that of sockets can fail
	d.signal()
	return d.nc, nil
}
