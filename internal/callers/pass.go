package callers

import (
	"net/url"
	"path"
	"strings"
	"time"
)

// Bounds of the tokens that each shard remembers.
const (
	// maxPassBytes bounds the remembered fields, plus passSize for each: two generations of
	// half as much.
	maxPassBytes = 4 << 20
	passSize     = 512
	// MaxPassTime is how long a field is remembered: its key may be withdrawn later.
	MaxPassTime = time.Minute
)

// Auth checks the authorization field of calls.
//
// Concurrency: it is called from anywhere, Epoch also under the lock of a shard.
type Auth interface {
	// Verify returns the pass of a field; calls without the field have the empty one. It may
	// take seconds. An error is one line for the caller, with nothing of the field.
	Verify(authorization string) (Pass, error)
	// Epoch changes when earlier results of Verify may not be valid any more.
	Epoch() uint64
}

// Pass is the result of a valid token. Immutable.
type Pass struct {
	User  string                 // the user, "": the token needs none
	Until time.Time              // after this it begins no calls; zero: no end
	May   func(path string) bool // reports whether it may call a method
}

// Allows reports whether the pass allows a path, both as it was sent and as a worker may read
// it: decoded, without empty parts and dots.
func (p *Pass) Allows(name string) bool {
	decoded, err := url.PathUnescape(name)
	if err != nil || !p.May(name) {
		return false
	}
	read := path.Clean("/" + strings.ReplaceAll(decoded, `\`, "/"))
	if strings.HasSuffix(decoded, "/") && read != "/" {
		read += "/"
	}
	return read == name || p.May(read)
}

// KnownPass is the pass of a field that was checked.
type KnownPass struct {
	Pass
	Identity string // of the caller, "": none
	epoch    uint64
	until    time.Duration
}

// NewKnownPass returns a pass that was checked now, which is wall by the clock, with the epoch
// from before the check.
func NewKnownPass(p Pass, epoch uint64, now time.Duration, wall time.Time) *KnownPass {
	k := &KnownPass{Pass: p, Identity: TokenIdentity(p.User), epoch: epoch, until: now + MaxPassTime}
	if !p.Until.IsZero() {
		k.until = min(k.until, now+p.Until.Sub(wall))
	}
	return k
}

// Valid reports whether a pass still counts; it may be nil.
func (p *KnownPass) Valid(epoch uint64, now time.Duration) bool {
	return p != nil && p.epoch == epoch && now < p.until
}

// Passes has the passes that a shard remembers, by field.
//
// Concurrency: guarded by the lock of its shard.
type Passes struct {
	recent, old map[string]*KnownPass
	bytes       int // of recent
}

// Find returns the valid pass of a field; nil: it must be checked.
func (s *Passes) Find(field []byte, epoch uint64, now time.Duration) *KnownPass {
	p := s.recent[string(field)]
	if p == nil {
		if p = s.old[string(field)]; p.Valid(epoch, now) {
			s.Remember(string(field), p)
		}
	}
	if !p.Valid(epoch, now) {
		return nil
	}
	return p
}

// Remember keeps the pass of a field. When half of the room is full, it forgets the fields
// that were not used since the last time.
func (s *Passes) Remember(field string, p *KnownPass) {
	if s.bytes += len(field) + passSize; s.recent == nil || s.bytes > maxPassBytes/2 {
		s.old, s.recent, s.bytes = s.recent, make(map[string]*KnownPass), len(field)+passSize
	}
	s.recent[field] = p
}
