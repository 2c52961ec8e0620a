package h2

// initialTableSize is the size of a dynamic table before any SETTINGS
// (RFC 9113, 6.5.2).
const initialTableSize = 4096

// A block may refer to maxCopies octets of the dynamic table, fields and names, and to
// copyRate more for each octet of input. Without a bound one octet of input would be 4
// KiB of output, again and again up to the list limit, and beyond it where names are
// copied into new entries. An honest block usually refers to each entry once, and to no
// more than the whole table, which is a quarter of maxCopies; the rate is for long lists
// of small fields.
const (
	maxCopies = 4 * initialTableSize
	copyRate  = 64
)

// maxUpdates is how many size updates a block may begin with: the smallest size since the
// last block, and the present one (RFC 7541, 4.2).
const maxUpdates = 2

// Decoder turns the header blocks of one direction of one connection into
// their stateless form.
//
// Shape: a static field stays an index; every other field becomes a literal without
// indexing, or never indexed if it was (RFC 7541, 6.2.3), with a static name index if
// the name has one. Order is kept. Huffman strings are copied as they are, except in
// watched fields and where they are longer than the text. A list of base64 values
// becomes a field for each (WatchList.Base64).
// Concurrency: belongs to its connection.
// Ordering: every block of the connection must pass through Transcode, in the
// order of arrival, also those of streams that are refused or gone.
// Source: RFC 7541; R12.
type Decoder struct {
	watch    *WatchList // of the table's entries
	wanted   *WatchList // from the next block on
	table    dynamicTable
	maxTable uint32
	maxList  int
	memos    [3]memo // by Kind
}

// Init prepares a decoder for a new connection.
//
// Units: maxTableSize in octets is the SETTINGS_HEADER_TABLE_SIZE from the first block
// on, 4096 if the setting is not sent; maxListSize is the largest list that is written
// to a Block, in octets as RFC 9113, 6.5.2 counts them.
func (d *Decoder) Init(watch *WatchList, maxTableSize uint32, maxListSize int) {
	*d = Decoder{watch: watch, wanted: watch, maxTable: maxTableSize, maxList: maxListSize}
	d.table.limit = min(maxTableSize, initialTableSize)
}

// Watch sets another list of names to find in later blocks. It does nothing before the
// next block.
func (d *Decoder) Watch(list *WatchList) { d.wanted = list }

// rewatch rewrites the dynamic table for the wanted list, as if the peer had inserted
// its entries with that.
func (d *Decoder) rewatch(b *Block) {
	d.watch = d.wanted
	d.table.rewrite(func(e *entry, form, into []byte) []byte {
		index, pos, _ := readInt(form, 0, 4) // no error: the forms are ours
		if index > 0 {
			e.traits = d.watch.static[index].traits
		} else {
			name, _, _ := readString(form, pos)
			plain, _ := b.decode(name)
			e.traits = d.watch.lookUp(plain).traits
		}
		value, _, _ := readString(form, int(e.nameForm))
		plain, _ := b.decode(value)
		e.traits = e.withValue(plain)
		return e.appendValue(append(into, form[:e.nameForm]...), value, plain)
	})
}

// Transcode reads a complete header block and leaves its stateless form in b.
//
// Errors: a CompressionError ends the connection, and the decoder must not be
// used again. A MalformedError or ErrListTooLarge refuses the stream only; a
// block that is both is called malformed. After an error b.Enc must not be forwarded.
func (d *Decoder) Transcode(b *Block, in []byte, kind Kind) error {
	b.Reset()
	if d.watch != d.wanted {
		d.rewatch(b)
	}
	b.kind, b.watch = kind, d.watch
	m := &d.memos[kind]
	version := d.table.version
	done, twice := m.recall(b, in, version)
	if done {
		return nil
	}
	if err := d.transcode(b, in); err != 0 {
		return err
	}
	err := b.checkWhole()
	if err == nil {
		b.readStatus()
	}
	switch {
	case err != nil || d.table.version != version:
	case twice:
		m.keep(b)
	default:
		m.see(in, version)
	}
	return err
}

func (d *Decoder) transcode(b *Block, in []byte) CompressionError {
	for pos := 0; pos < len(in); {
		var err CompressionError
		switch first := in[pos]; {
		case first >= 0x80:
			pos, err = d.indexed(b, in, pos)
		case first >= 0x40:
			pos, err = d.literal(b, in, pos, 6)
		case first >= 0x20:
			pos, err = d.sizeUpdate(b, in, pos)
		default:
			pos, err = d.literal(b, in, pos, 4)
		}
		if err != 0 {
			return err
		}
	}
	return 0
}

// sizeUpdate reads a change of the table's size (RFC 7541, 6.3).
func (d *Decoder) sizeUpdate(b *Block, in []byte, pos int) (int, CompressionError) {
	size, pos, err := readInt(in, pos, 5)
	switch {
	case err != 0:
		return pos, err
	case b.Fields > 0: // RFC 7541, 4.2
		return pos, CompressionLateUpdate
	case size > d.maxTable:
		return pos, CompressionTableSize
	case b.updates == maxUpdates: // RFC 7541, 4.2
		return pos, CompressionUpdates
	}
	b.updates++
	d.table.resize(size)
	return pos, 0
}

// indexed reads a field that is in one of the tables (RFC 7541, 6.1).
func (d *Decoder) indexed(b *Block, in []byte, pos int) (int, CompressionError) {
	index, pos, err := readInt(in, pos, 7)
	if err != 0 {
		return pos, err
	}
	if index < firstDynamic {
		return pos, d.indexedStatic(b, index)
	}
	e := d.table.at(index - firstDynamic)
	if e == nil {
		return pos, CompressionBadIndex
	}
	if b.copies += int(e.size); b.copies > maxCopies+copyRate*len(in) {
		return pos, CompressionBomb
	}
	if e.role == roleList {
		form := d.table.formOf(e)
		d.split(b, e, form[:e.nameForm], form[len(form)-e.value():], false)
	} else if b.count(e.size, d.maxList) {
		start := len(b.Enc)
		b.Enc = append(b.Enc, d.table.formOf(e)...)
		if e.watch != 0 {
			b.note(e.watch, start, e.value(), 0)
		}
	}
	b.checkField(e.traits)
	return pos, 0
}

func (d *Decoder) indexedStatic(b *Block, index uint32) CompressionError {
	if index == 0 {
		return CompressionBadIndex
	}
	f := &d.watch.static[index]
	if b.count(f.size, d.maxList) {
		start := len(b.Enc)
		b.Enc = append(b.Enc, 0x80|byte(index))
		if f.watch != 0 {
			b.note(f.watch, start, 0, uint8(index))
		}
	}
	b.checkField(f.traits)
	return 0
}

// literal reads a field with a literal value (RFC 7541, 6.2).
// A prefix of 6 bits means that it is inserted into the dynamic table.
func (d *Decoder) literal(b *Block, in []byte, pos int, prefix uint8) (int, CompressionError) {
	start, never := len(b.Enc), in[pos]&0xf0 == 0x10
	e, pos, err := d.name(b, in, pos, prefix)
	if err != 0 {
		return pos, err
	}
	value, pos, err := readString(in, pos)
	if err != 0 {
		return pos, err
	}
	e.nameForm = uint32(len(b.Enc) - start)
	plain, err := b.decode(value)
	if err != 0 {
		return pos, err
	}
	e.size = e.nameSize + uint32(len(plain)) + fieldOverhead
	e.traits = e.withValue(plain)
	b.Enc = e.appendValue(b.Enc, value, plain)
	if prefix == 6 {
		d.table.insert(e, b.Enc[start:])
	}
	if e.role == roleList {
		name := b.Enc[start : start+int(e.nameForm)] // not moved: the first field begins with it
		b.Enc = b.Enc[:start]
		d.split(b, &e, name, plain, never)
		b.checkField(e.traits)
		return pos, 0
	}
	d.finish(b, &e, start, never)
	return pos, 0
}

// split writes a field for each value of the list in e, after its name in its stateless
// form. Each counts as a field, so that a list of commas is not a bomb: the output ends
// at the limit.
func (d *Decoder) split(b *Block, e *entry, name, list []byte, never bool) {
	for more := true; more; {
		var value []byte
		value, list, more = nextOfList(list)
		value = trimSpace(value)
		if !b.count(e.nameSize+uint32(len(value))+fieldOverhead, d.maxList) {
			continue
		}
		start := len(b.Enc)
		b.Enc = append(b.Enc, name...)
		if never {
			b.Enc[start] |= 0x10
		}
		b.Enc = append(appendInt(b.Enc, 0, 7, uint32(len(value))), value...)
		if e.watch != 0 {
			b.note(e.watch, start, len(value), 0)
		}
	}
}

// finish accounts for a literal field at the end of Enc.
func (d *Decoder) finish(b *Block, e *entry, start int, never bool) {
	if never {
		b.Enc[start] |= 0x10
	}
	if !b.count(e.size, d.maxList) {
		b.Enc = b.Enc[:start]
	} else if e.watch != 0 {
		b.note(e.watch, start, e.value(), 0)
	}
	b.checkField(e.traits)
}

// name reads the name of a literal field and writes it. The result has all that is known
// about the name.
func (d *Decoder) name(b *Block, in []byte, pos int, prefix uint8) (e entry, next int, err CompressionError) {
	index, pos, err := readInt(in, pos, prefix)
	switch {
	case err != 0:
		return e, pos, err
	case index == 0:
		return d.spelledName(b, in, pos)
	case index < firstDynamic:
		f := &d.watch.static[index]
		b.Enc = appendInt(b.Enc, 0, 4, index)
		e.nameSize, e.traits = uint32(len(staticTable[index].name)), f.traits
		return e, pos, 0
	}
	named := d.table.at(index - firstDynamic)
	if named == nil {
		return e, pos, CompressionBadIndex
	}
	if b.copies += int(named.nameForm); b.copies > maxCopies+copyRate*len(in) {
		return e, pos, CompressionBomb
	}
	b.Enc = append(b.Enc, d.table.formOf(named)[:named.nameForm]...)
	e.nameSize, e.traits = named.nameSize, named.traits
	return e, pos, 0
}

func (d *Decoder) spelledName(b *Block, in []byte, pos int) (e entry, next int, err CompressionError) {
	name, pos, err := readString(in, pos)
	if err != 0 {
		return e, pos, err
	}
	plain, err := b.decode(name)
	if err != 0 {
		return e, pos, err
	}
	known := d.watch.lookUp(plain)
	e.nameSize, e.traits = uint32(len(plain)), known.traits
	if known.static != 0 {
		b.Enc = appendInt(b.Enc, 0, 4, uint32(known.static))
	} else {
		b.Enc = name.append(append(b.Enc, 0), plain, false)
	}
	return e, pos, 0
}

// decode returns the text of s, valid until the next decode.
func (b *Block) decode(s wireString) ([]byte, CompressionError) {
	if !s.huffman {
		return s.octets, 0
	}
	var err CompressionError
	b.plain, err = huffman.appendDecoded(b.plain[:0], s.octets)
	return b.plain, err
}

// wireString is a string literal as received (RFC 7541, 5.2).
type wireString struct {
	octets  []byte
	huffman bool
}

// append appends s, whose text is plain. A Huffman string that is longer than its text is
// replaced by the text: this bounds the size of a table entry.
func (s wireString) append(dst, plain []byte, unencoded bool) []byte {
	if s.huffman && !unencoded && len(s.octets) <= len(plain) {
		dst = appendInt(dst, 0x80, 7, uint32(len(s.octets)))
		return append(dst, s.octets...)
	}
	dst = appendInt(dst, 0, 7, uint32(len(plain)))
	return append(dst, plain...)
}

// readString reads a string literal (RFC 7541, 5.2).
func readString(in []byte, pos int) (s wireString, next int, err CompressionError) {
	if pos >= len(in) {
		return s, pos, CompressionTruncated
	}
	s.huffman = in[pos] >= 0x80
	n, pos, err := readInt(in, pos, 7)
	if err != 0 {
		return s, pos, err
	}
	if int(n) > len(in)-pos {
		return s, pos, CompressionTruncated
	}
	next = pos + int(n)
	s.octets = in[pos:next]
	return s, next, 0
}

// readInt reads an integer with a prefix of that many bits (RFC 7541, 5.1).
func readInt(in []byte, pos int, prefix uint8) (uint32, int, CompressionError) {
	top := uint32(1)<<prefix - 1
	v := uint32(in[pos]) & top
	if v < top {
		return v, pos + 1, 0
	}
	return readLongInt(in, pos+1, top)
}

// readLongInt reads the octets after a full prefix: at most four, more than any index or
// length within our limits needs.
func readLongInt(in []byte, pos int, v uint32) (uint32, int, CompressionError) {
	for shift := 0; shift < 28; shift += 7 {
		if pos >= len(in) {
			return 0, pos, CompressionTruncated
		}
		c := in[pos]
		pos++
		v += uint32(c&0x7f) << shift
		if c < 0x80 {
			return v, pos, 0
		}
	}
	return 0, pos, CompressionIntOverflow
}

// appendInt appends v with a prefix of that many bits, below the given flags
// (RFC 7541, 5.1).
func appendInt(dst []byte, flags byte, prefix uint8, v uint32) []byte {
	top := uint32(1)<<prefix - 1
	if v < top {
		return append(dst, flags|byte(v))
	}
	dst = append(dst, flags|byte(top))
	for v -= top; v >= 0x80; v >>= 7 {
		dst = append(dst, byte(v)|0x80)
	}
	return append(dst, byte(v))
}
