package shard

import (
	"math/bits"
	"time"
)

// tick is the resolution of the wheel.
const tick = time.Millisecond

const (
	wheelBits   = 8
	wheelSlots  = 1 << wheelBits
	wheelMask   = wheelSlots - 1
	wheelLevels = 3
	// wheelSpan is how far ahead the wheel reaches (about 4.6 hours); a later timer waits
	// in the last slot and is set again from there.
	wheelSpan = 1<<(wheelBits*wheelLevels) - 1
)

// Expirer is called when its timer expires, under the shard's lock.
type Expirer interface {
	Expired(t *Timer, now time.Duration)
}

// Timer is one alarm, embedded in its owner. Setting and stopping it costs no allocation
// and no runtime timer. Owner is set once, before first use.
type Timer struct {
	Owner Expirer

	at         time.Duration
	due        int64 // tick
	slot       *timerSlot
	next, prev *Timer
}

// Set reports whether the timer runs.
func (t *Timer) Set() bool { return t.slot != nil }

// rings returns when the wheel will call the owner: at the end of the tick.
func (t *Timer) rings() time.Duration { return time.Duration(t.due) * tick }

// At returns when a timer that is set expires.
func (t *Timer) At() time.Duration { return t.at }

type timerSlot struct {
	head  *Timer // called in the order of setting
	tail  *Timer
	level uint8
	index uint8
}

// wheel is a hierarchical timing wheel: level 0 has a slot for each of the next 256 ms,
// and each further level covers 256 times as much.
type wheel struct {
	now     int64 // the tick that was handled last
	count   int
	slots   [wheelLevels][wheelSlots]timerSlot
	nonzero [wheelLevels][wheelSlots / 64]uint64
}

func (w *wheel) set(t *Timer, at time.Duration) {
	w.stop(t)
	t.at = at
	// Rounded up, so that no timer expires early; never in the past.
	t.due = max(int64((at+tick-1)/tick), w.now+1)
	w.insert(t)
	w.count++
}

func (w *wheel) insert(t *Timer) {
	due := min(t.due, w.now+wheelSpan)
	ahead := due - w.now
	level := 0
	for ahead >= wheelSlots {
		ahead >>= wheelBits
		level++
	}
	index := uint8(due >> (wheelBits * level) & wheelMask)
	slot := &w.slots[level][index]
	slot.level, slot.index = uint8(level), index
	t.slot, t.prev, t.next = slot, slot.tail, nil
	if slot.tail != nil {
		slot.tail.next = t
	} else {
		slot.head = t
	}
	slot.tail = t
	w.nonzero[level][index>>6] |= 1 << (index & 63)
}

func (w *wheel) stop(t *Timer) {
	if t.slot == nil {
		return
	}
	w.unlink(t)
	w.count--
}

func (w *wheel) unlink(t *Timer) {
	slot := t.slot
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		slot.head = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		slot.tail = t.prev
	}
	if slot.head == nil {
		w.nonzero[slot.level][slot.index>>6] &^= 1 << (slot.index & 63)
	}
	t.slot, t.next, t.prev = nil, nil, nil
}

// advance calls the owners of all timers that are due at now.
func (w *wheel) advance(now time.Duration) {
	for to := int64(now / tick); w.now < to; {
		// Empty slots are passed in one step: a shard may have slept for days.
		used := w.nextUsed()
		if used == 0 || used > to {
			w.now = to
			return
		}
		w.now = used
		for level := 1; level < wheelLevels && w.now&(1<<(wheelBits*level)-1) == 0; level++ {
			w.cascade(level)
		}
		slot := &w.slots[0][w.now&wheelMask]
		for slot.head != nil {
			t := slot.head
			w.unlink(t)
			if t.due > w.now { // it was beyond the span
				w.insert(t)
				continue
			}
			w.count--
			t.Owner.Expired(t, now)
		}
	}
}

// cascade spreads the slot of a higher level that begins now over the lower levels.
func (w *wheel) cascade(level int) {
	slot := &w.slots[level][w.now>>(wheelBits*level)&wheelMask]
	for slot.head != nil {
		t := slot.head
		w.unlink(t)
		w.insert(t)
	}
}

// next returns when the wheel must be checked again, 0 if it is empty. That may be earlier
// than the next timer, never later.
func (w *wheel) next() time.Duration { return time.Duration(w.nextUsed()) * tick }

// nextUsed returns the tick at which the first used slot begins, 0 if the wheel is empty.
func (w *wheel) nextUsed() int64 {
	if w.count == 0 {
		return 0
	}
	best := int64(0)
	for level := range wheelLevels {
		shift := wheelBits * level
		base := w.now >> shift
		if d := w.distance(level, int(base&wheelMask)); d > 0 {
			if at := (base + int64(d)) << shift; best == 0 || at < best {
				best = at
			}
		}
	}
	return best
}

// distance is how many slots after from the next used slot is (1 to 256), 0 if the level
// is empty.
func (w *wheel) distance(level, from int) int {
	words := &w.nonzero[level]
	for d := 1; d <= wheelSlots; {
		i := (from + d) & wheelMask
		word := words[i>>6] >> (i & 63)
		if word != 0 {
			d += bits.TrailingZeros64(word)
			if d <= wheelSlots {
				return d
			}
			return 0
		}
		d += 64 - i&63
	}
	return 0
}
