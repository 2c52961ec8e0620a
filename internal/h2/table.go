package h2

// entry is one field of the dynamic table.
//
// Shape: form is the field as a literal without indexing, complete and stateless, so that
// an indexed field costs one copy. Its first nameForm octets are the name (a static index,
// or the string); the rest is the value, unencoded at the end of form if the field is
// watched.
type entry struct {
	offset   uint32 // of form in the arena
	form     uint32
	nameForm uint32
	nameSize uint32 // of the name, decoded
	size     uint32 // RFC 7541, 4.1
	traits
}

// value is the length of the decoded value.
func (e *entry) value() int { return int(e.size - e.nameSize - fieldOverhead) }

// appendValue appends the value, whose text is plain. A watched value is appended
// unencoded: the owner reads it in place, and the receiver need not decode it on every
// call.
func (e *entry) appendValue(dst []byte, value wireString, plain []byte) []byte {
	return value.append(dst, plain, e.watch != 0 || e.role == roleList)
}

// dynamicTable is the dynamic table of a peer's encoder (RFC 7541, 2.3.2).
//
// Shape: entries is a ring with a power of two of places, indexed by the
// number of the insertion; the forms lie in the arena in the same order, so
// that an eviction only moves the beginning.
// Units: a form is never longer than the size of its entry (its literal header
// takes at most 11 of the 32 octets of overhead, and strings are stored in
// their shorter coding), so that the forms of all entries take at most limit
// octets, the arena at most twice as much, and the ring 28 octets for each
// 32 of limit. Nothing is allocated before the first insertion.
type dynamicTable struct {
	entries  []entry
	inserted uint32 // insertions so far, modulo 2^32
	count    uint32
	size     uint32
	limit    uint32 // the size that the peer has chosen
	arena    []byte
	version  uint64 // changes with every insertion, eviction and new limit
}

// at returns the entry with this distance from the newest, or nil.
func (t *dynamicTable) at(distance uint32) *entry {
	if distance >= t.count {
		return nil
	}
	return &t.entries[(t.inserted-1-distance)&uint32(len(t.entries)-1)]
}

func (t *dynamicTable) formOf(e *entry) []byte {
	return t.arena[e.offset : e.offset+e.form]
}

// insert adds the entry e with its form, which is copied.
func (t *dynamicTable) insert(e entry, form []byte) {
	t.version++
	if e.size > t.limit {
		t.evict(0) // RFC 7541, 4.4: not an error
		return
	}
	t.evict(t.limit - e.size)
	t.reserve(len(form))
	e.offset, e.form = uint32(len(t.arena)), uint32(len(form))
	t.arena = append(t.arena, form...)
	t.entries[t.inserted&uint32(len(t.entries)-1)] = e
	t.inserted++
	t.count++
	t.size += e.size
}

// resize evicts what a new limit has no room for (RFC 7541, 4.3).
func (t *dynamicTable) resize(limit uint32) {
	if limit != t.limit {
		t.version++
	}
	t.limit = limit
	t.evict(limit)
}

// rewrite gives every entry, the oldest first, another form, which is appended to
// into and may be as long as the entry's size.
func (t *dynamicTable) rewrite(another func(e *entry, form, into []byte) []byte) {
	t.version++
	room := make([]byte, 0, t.size)
	for d := t.count; d > 0; d-- {
		e := t.at(d - 1)
		start := len(room)
		room = another(e, t.formOf(e), room)
		e.offset, e.form = uint32(start), uint32(len(room)-start)
	}
	t.arena = room
}

func (t *dynamicTable) evict(target uint32) {
	for t.size > target {
		t.version++
		t.size -= t.at(t.count - 1).size
		t.count--
	}
	if t.count == 0 {
		t.arena = t.arena[:0]
	}
}

// reserve makes room for one more entry with a form of n octets.
func (t *dynamicTable) reserve(n int) {
	if int(t.count) == len(t.entries) {
		t.growRing()
	}
	if len(t.arena)+n > cap(t.arena) {
		t.compact(n)
	}
}

func (t *dynamicTable) growRing() {
	grown := make([]entry, max(8, 2*len(t.entries)))
	for d := range t.count {
		grown[(t.inserted-1-d)&uint32(len(grown)-1)] = *t.at(d)
	}
	t.entries = grown
}

// compact drops the forms of evicted entries. It leaves half of the arena
// free, so that its copying is paid for by as many octets inserted.
func (t *dynamicTable) compact(n int) {
	start := uint32(len(t.arena))
	if t.count > 0 {
		start = t.at(t.count - 1).offset
	}
	live := t.arena[start:]
	room := t.arena
	if need := 2 * (len(live) + n); need > cap(room) {
		room = make([]byte, 0, max(256, need))
	}
	room = room[:len(live)]
	copy(room, live)
	t.arena = room
	for d := range t.count {
		t.at(d).offset -= start
	}
}
