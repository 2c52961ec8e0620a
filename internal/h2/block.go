package h2

// Kind says which rules about pseudo-header fields a block must keep.
type Kind uint8

// The kinds of header blocks. A 1xx answer is a ResponseBlock; trailers of
// either side are a TrailerBlock.
const (
	RequestBlock Kind = iota
	ResponseBlock
	TrailerBlock
)

// Block is one header block in its stateless form.
//
// Shape: Enc is valid as the content of HEADERS and CONTINUATION on every
// connection, whatever came before, once that connection's first block has begun
// with a table size update to zero (R12).
// Units: ListSize counts name, value and 32 octets for each field (RFC 9113,
// 6.5.2); Fields counts fields.
// Concurrency: a Block belongs to its owner, who may use it for any number of
// decoders, one after the other. Transcode does not allocate once Enc and the
// inner buffers have grown to the size of the blocks.
type Block struct {
	Enc      []byte
	ListSize int
	Fields   int
	// Status is the :status of a ResponseBlock, if that name is on the watch
	// list.
	Status int
	// Same, if it is not 0, is the same number for all blocks of this kind and
	// connection that are equal in every octet: what was learned from one of them
	// holds for all.
	Same uint64

	plain []byte // the last Huffman string, decoded

	watch   *WatchList
	watched [maxWatched]sighting
	seen    uint64 // one bit by id for each of watched that is in this block

	kind    Kind
	roles   role // pseudo-header fields so far, and content-length
	regular bool // a regular field was met
	over    bool // ListSize passed the limit; Enc does not grow any more
	fault   MalformedError
	copies  int // octets that the block refers to in the dynamic table
	updates int // size updates
}

// sighting is the position of a watched field in Enc.
type sighting struct {
	start, end, value, count uint32
	static                   uint8 // its row if the value is in the static table
	id                       uint8
}

// Watched is a field of the watch list in a block.
type Watched struct {
	// Start and End bound the encoded field in Enc, so that the owner can
	// leave it out or replace it.
	Start, End int
	// Value is decoded. It is valid until the Block is used again and must not
	// be changed.
	Value []byte
	// Count is how often the field is in the block; the rest is about the last one.
	Count int
}

// saw reports whether the field with this id is in the block.
func (b *Block) saw(id uint8) bool { return b.seen&(1<<id) != 0 }

// Watched returns the last field of this name, and whether the block has one.
//
// After ErrListTooLarge only the fields before the limit are found.
func (b *Block) Watched(id int) (Watched, bool) {
	if !b.saw(uint8(id)) {
		return Watched{}, false
	}
	s := &b.watched[id]
	w := Watched{Start: int(s.start), End: int(s.end), Count: int(s.count)}
	if s.static != 0 {
		w.Value = b.watch.static[s.static].value
	} else {
		w.Value = b.Enc[s.value:s.end:s.end]
	}
	return w, true
}

// Reset empties the block and keeps its memory.
func (b *Block) Reset() {
	b.Enc, b.plain = b.Enc[:0], b.plain[:0]
	b.ListSize, b.Fields, b.Status, b.Same = 0, 0, 0, 0
	b.copies, b.updates = 0, 0
	b.seen, b.roles, b.fault = 0, 0, 0
	b.regular, b.over = false, false
}

// count adds a field to the list and reports whether it may be written to Enc.
func (b *Block) count(size uint32, limit int) bool {
	b.Fields++
	b.ListSize += int(size)
	if b.ListSize > limit {
		b.over = true
	}
	return !b.over
}

// checkField applies the rules for the order and number of fields.
func (b *Block) checkField(t traits) {
	if t.role&rolePseudo == 0 {
		b.regular = true
		b.refuse(t.fault)
		if b.roles&t.role&roleLength != 0 {
			b.refuse(MalformedLength) // a second one, and no telling which counts
		}
		b.roles |= t.role & roleLength
		return
	}
	switch {
	case b.kind == TrailerBlock:
		b.refuse(MalformedPseudoInTrailers)
	case (b.kind == ResponseBlock) != (t.role == roleStatus):
		b.refuse(MalformedPseudoMisplaced)
	case b.regular:
		b.refuse(MalformedPseudoAfterRegular)
	case b.roles&t.role != 0:
		b.refuse(MalformedPseudoDuplicate)
	}
	b.roles |= t.role
	b.refuse(t.fault)
}

// refuse keeps the first fault of the block.
func (b *Block) refuse(fault MalformedError) {
	if fault == MalformedValueSpace && b.kind != RequestBlock {
		// gRPC leaves spaces in grpc-message as they are, so a text with a space at
		// its end is an ordinary answer of a worker, which must not be refused. To
		// receivers it is a stream error at most.
		return
	}
	if b.fault == 0 {
		b.fault = fault
	}
}

// note records a watched field at the end of Enc, with the length of its value, or the
// static row of the value.
func (b *Block) note(watch uint8, start, valueLen int, static uint8) {
	id, end := (watch-1)%maxWatched, uint32(len(b.Enc))
	s := &b.watched[id]
	count := uint32(1)
	if b.saw(id) {
		count += s.count
	}
	*s = sighting{start: uint32(start), end: end, value: end - uint32(valueLen), count: count, static: static, id: id}
	b.seen |= 1 << id
}

// checkWhole applies the rules that need the whole block.
func (b *Block) checkWhole() error {
	b.refuse(b.missing())
	if b.kind == RequestBlock && !b.over && b.saw(b.watch.host) {
		b.refuse(b.hostFault())
	}
	if b.fault != 0 {
		return b.fault
	}
	if b.over {
		return ErrListTooLarge
	}
	return nil
}

// readStatus sets the Status of a good block.
func (b *Block) readStatus() {
	if b.kind != ResponseBlock || b.watch.status == 0 {
		return
	}
	w, _ := b.Watched(int(b.watch.status - 1)) // a good response has one, of three digits
	b.Status = int(w.Value[0]-'0')*100 + int(w.Value[1]-'0')*10 + int(w.Value[2]-'0')
}

// missing returns the fault for the first missing pseudo-header field.
func (b *Block) missing() MalformedError {
	switch {
	case b.kind == TrailerBlock:
		return 0
	case b.kind == ResponseBlock:
		if b.roles&roleStatus == 0 {
			return MalformedStatusMissing
		}
		return 0
	case b.roles&roleConnect != 0:
		if b.roles&^roleLength != roleMethod|roleConnect|roleAuthority {
			return MalformedConnect
		}
		return 0
	case b.roles&roleMethod == 0:
		return MalformedMethodMissing
	case b.roles&roleScheme == 0:
		return MalformedSchemeMissing
	case b.roles&rolePath == 0:
		return MalformedPathMissing
	case b.roles&(roleAsterisk|roleOptions) == roleAsterisk:
		return MalformedPath
	}
	return 0
}
