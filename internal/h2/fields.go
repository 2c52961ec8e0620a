package h2

import (
	"bytes"
	"slices"
	"strings"
)

// fieldOverhead is added to name and value in both accounts of a field's size
// (RFC 7541, 4.1; RFC 9113, 6.5.2).
const fieldOverhead = 32

// maxWatched is the most names a WatchList holds: one bit each in Block.seen.
const maxWatched = 64

// role is the meaning of a field for the rules of a header block, one bit each.
type role uint8

const (
	roleMethod role = 1 << iota
	roleScheme
	rolePath
	roleAuthority
	roleStatus
	roleConnect // a :method whose value is CONNECT
	roleTE
	roleLength

	rolePseudo = roleMethod | roleScheme | rolePath | roleAuthority | roleStatus
	roleTarget = roleScheme | rolePath | roleAuthority

	// Two more values have a meaning, but table entries have no room for another bit:
	// no request has :status, and te is checked by itself.
	roleOptions  = roleStatus // with roleMethod: OPTIONS
	roleAsterisk = roleTE     // with rolePath: "*", which only OPTIONS may have
	// One more form of a value of a regular field has a meaning: a list of base64 values,
	// which is written as a field for each.
	roleList = roleConnect
)

// traits is the result of checking a field. Table entries keep it, so that an indexed
// field is not checked again.
type traits struct {
	watch     uint8 // id in the watch list + 1; 0 is not watched
	role      role
	nameFault MalformedError // fault of the name alone; nameBase64
	fault     MalformedError // fault of the field
}

// nameBase64 is the value of traits.nameFault for a good name whose values must be
// base64.
const nameBase64 = 1<<8 - 1

// knownName is a name of the static table, of the watch list or of the rules.
type knownName struct {
	static uint8 // first row of the static table; 0 means no row
	traits
}

// staticField is a row of the static table as seen with one watch list.
type staticField struct {
	traits
	size  uint32 // as fieldOverhead
	value []byte
}

// WatchList is the names of the fields that the owner wants to find in blocks.
//
// Concurrency: immutable; one list may serve any number of decoders.
type WatchList struct {
	names  map[string]knownName
	static [firstDynamic]staticField
	status uint8  // id of ":status" + 1, 0: not on the list
	base64 string // suffix of names whose values must be base64, "": none

	length, authority, host uint8 // ids of the engine's own names: always on the list
}

// NewWatchList returns a list of these names; the id of a name is its index.
// The engine itself looks for content-length, :authority and host, which join the
// list at its end if they are not there.
//
// Shape: names in lower case, pseudo-header fields with their colon.
// Errors: panics on more than 64 names, those three included, or on a name
// twice (internal error).
func NewWatchList(names ...string) *WatchList {
	names = slices.Clip(names)
	for _, own := range []string{contentLength, authorityName, hostName} {
		if !slices.Contains(names, own) {
			names = append(names, own)
		}
	}
	if len(names) > maxWatched {
		panic("internal error: more watched names than maxWatched") //nolint:forbidigo // the names are constants of the caller
	}
	w := &WatchList{names: make(map[string]knownName)}
	for i := len(staticTable) - 1; i > 0; i-- {
		w.names[staticTable[i].name] = knownName{static: uint8(i)}
	}
	for id, name := range names {
		known := w.names[name]
		if known.watch != 0 {
			panic("internal error: watched twice: " + name) //nolint:forbidigo // the names are constants of the caller
		}
		known.watch = uint8(id + 1)
		switch name {
		case ":status":
			w.status = known.watch
		case contentLength:
			w.length = uint8(id)
		case authorityName:
			w.authority = uint8(id)
		case hostName:
			w.host = uint8(id)
		}
		w.names[name] = known
	}
	w.addRules()
	for i := 1; i < len(staticTable); i++ {
		w.static[i] = w.staticField(staticTable[i])
	}
	return w
}

// Base64 makes decoders refuse blocks in which a field whose name ends with suffix has a
// value that is not base64 (the standard alphabet, with or without padding): to some
// receivers such a value is a fault of the whole connection. A list of base64 values with
// commas between is allowed; it is written as a field for each, for the same receivers do
// not accept the list. Base64 returns w, and is called before w is used.
//
// Source: gRPC over HTTP/2, Custom-Metadata: "Implementations must split
// Binary-Headers on ",""; those of C core 1.51 do not [E].
func (w *WatchList) Base64(suffix string) *WatchList {
	w.base64 = suffix
	for name, known := range w.names {
		if known.nameFault == 0 && strings.HasSuffix(name, suffix) {
			known.nameFault = nameBase64
			w.names[name] = known
		}
	}
	return w
}

// addRules marks the names for which HTTP/2 has rules.
func (w *WatchList) addRules() {
	for name, r := range map[string]role{
		":method": roleMethod, ":scheme": roleScheme, ":path": rolePath,
		":authority": roleAuthority, ":status": roleStatus, "te": roleTE, contentLength: roleLength,
	} {
		known := w.names[name]
		known.role = r
		w.names[name] = known
	}
	// RFC 9113, 8.2.2: fields that belong to one connection (R13).
	for _, name := range []string{"connection", "proxy-connection", "keep-alive", "transfer-encoding", "upgrade"} {
		known := w.names[name]
		known.nameFault = MalformedConnectionField
		w.names[name] = known
	}
}

func (w *WatchList) staticField(row staticEntry) staticField {
	value := slices.Clip([]byte(row.value)) // it is handed out, and shared
	return staticField{
		traits: w.names[row.name].withValue(value),
		size:   uint32(len(row.name) + len(row.value) + fieldOverhead),
		value:  value,
	}
}

// lookUp returns what is known about a literal name.
func (w *WatchList) lookUp(name []byte) knownName {
	known, ok := w.names[string(name)]
	if !ok {
		known.nameFault = checkName(name)
		if n := len(name) - len(w.base64); known.nameFault == 0 && w.base64 != "" && n >= 0 && string(name[n:]) == w.base64 {
			known.nameFault = nameBase64
		}
	}
	return known
}

// withValue returns the traits of a field with the name of t and this value.
func (t traits) withValue(value []byte) traits {
	for _, r := range [...]role{roleMethod, rolePath} {
		if t.role&r != 0 {
			t.role = r // whatever the value was of the entry that had the name
		}
	}
	t.fault = t.nameFault
	if t.fault == nameBase64 {
		t.role, t.fault = checkBase64(value)
	}
	if t.fault == 0 {
		t.fault = t.role.checkValue(value)
	}
	switch {
	case t.role == roleMethod && string(value) == "CONNECT":
		t.role |= roleConnect
	case t.role == roleMethod && string(value) == "OPTIONS":
		t.role |= roleOptions
	case t.role == rolePath && string(value) == "*":
		t.role |= roleAsterisk
	}
	return t
}

// checkValue checks a value (RFC 9113, 8.2.1), also by the rules for te and for a
// pseudo-header field. Spaces around it are checked last, as the only fault that some
// blocks may have.
func (r role) checkValue(value []byte) MalformedError {
	var all uint8
	for _, c := range value {
		all |= octets[c]
	}
	n := len(value)
	if r&roleTarget != 0 && all&octetForbidden == 0 {
		return r.checkTarget(value, all)
	}
	switch {
	case all&octetForbidden != 0:
		return MalformedValueChar
	case r == roleTE && string(value) != "trailers":
		return MalformedTE
	case r == roleLength && !isDigits(value):
		return MalformedLength
	case r == roleMethod && !isToken(value):
		return MalformedMethod
	case r == roleStatus && !isStatus(value):
		return MalformedStatus
	case n > 0 && (isSpace(value[0]) || isSpace(value[n-1])):
		return MalformedValueSpace
	}
	return 0
}

// Classes of octets in names and values.
const (
	octetToken uint8 = 1 << iota // tchar of RFC 9110, 5.6.2
	octetUpper
	octetForbidden // NUL, CR, LF: RFC 9113, 8.2.1
	octetBase64    // RFC 4648, 4, without the padding
	octetNoScheme
	octetNoAuthority
	octetNoTarget // of a path or a query
)

// octets is the class of every octet. It is never written after the program
// has started.
var octets = classifyOctets()

func classifyOctets() (class [256]uint8) {
	for _, c := range []byte("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz") {
		class[c] = octetToken
	}
	for c := 'A'; c <= 'Z'; c++ {
		class[c] = octetToken | octetUpper
	}
	for _, c := range []byte(base64Digits) {
		class[c] |= octetBase64
	}
	for c, rule := range map[uint8]string{octetNoScheme: schemeOctets, octetNoAuthority: authorityOctets, octetNoTarget: targetOctets} {
		for octet := range class {
			if strings.IndexByte(rule, byte(octet)) < 0 {
				class[octet] |= c
			}
		}
	}
	for _, c := range []byte("\x00\r\n") {
		class[c] |= octetForbidden
	}
	return class
}

// base64Digits are the digits of RFC 4648, 4, by their values.
const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

// checkBase64 checks a value that must be base64, or a list of such values.
func checkBase64(value []byte) (role, MalformedError) {
	var r role
	for part, rest, more := nextOfList(value); ; part, rest, more = nextOfList(rest) {
		if more {
			r = roleList
		}
		if r == roleList {
			part = trimSpace(part)
		}
		if !isBase64(part) {
			return 0, MalformedBase64
		}
		if !more {
			return r, 0
		}
	}
}

// nextOfList takes the first value from a list. more reports whether rest has another
// one, which may be empty.
func nextOfList(list []byte) (value, rest []byte, more bool) { return bytes.Cut(list, []byte(",")) }

// trimSpace removes the spaces and tabs around a value of a list (RFC 9110, 5.6.1).
func trimSpace(s []byte) []byte { return bytes.Trim(s, " \t") }

// isBase64 reports whether s is base64, padded or not, in the only form of its value: the
// unused bits of the last digit are 0.
func isBase64(s []byte) bool {
	for range 2 {
		s = bytes.TrimSuffix(s, []byte("="))
	}
	all := octetBase64
	for _, c := range s {
		all &= octets[c]
	}
	if all == 0 {
		return false
	}
	switch len(s) % 4 {
	case 1:
		return false
	case 2:
		return strings.IndexByte(base64Digits, s[len(s)-1])&0xf == 0
	case 3:
		return strings.IndexByte(base64Digits, s[len(s)-1])&0x3 == 0
	}
	return true
}

// checkName checks an unknown name (RFC 9113, 8.2.1 and 8.3).
func checkName(name []byte) MalformedError {
	if len(name) == 0 {
		return MalformedNameEmpty
	}
	if name[0] == ':' {
		// That includes :protocol: RFC 8441 is not announced by our SETTINGS.
		return MalformedPseudoUnknown
	}
	for _, c := range name {
		switch octets[c] & (octetToken | octetUpper) {
		case octetToken:
		case octetToken | octetUpper:
			return MalformedNameUppercase
		default:
			return MalformedNameChar
		}
	}
	return 0
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' }

func isToken(s []byte) bool {
	for _, c := range s {
		if octets[c]&octetToken == 0 {
			return false
		}
	}
	return len(s) > 0
}

func isStatus(s []byte) bool {
	return len(s) == 3 && '1' <= s[0] && s[0] <= '9' && isDigit(s[1]) && isDigit(s[2])
}

func isDigits(s []byte) bool {
	for _, c := range s {
		if !isDigit(c) {
			return false
		}
	}
	return len(s) > 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
