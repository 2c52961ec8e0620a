package method

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/schema"
)

const (
	// maxPlaceholderBytes bounds what stands between {{ and }}.
	maxPlaceholderBytes = 100
	// maxRandomString bounds a random text, in bytes.
	maxRandomString = 1 << 20
	// letters are what a random text is made of.
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	// knownWords is what an error lists.
	knownWords = ".RequestNumber, .MessageNumber, .UUID, newUUID, randomInt MIN MAX, randomString LENGTH, " +
		"uniform MIN MAX, exponential MEAN or MEAN:WEIGHT and more pairs, mix VALUE:WEIGHT and more pairs"
)

// word is what a placeholder asks for.
type word uint8

const (
	requestNumber word = iota // the number of the call
	messageNumber             // the number of the message in its call
	callUUID                  // one UUID for each call
	newUUID                   // another one each time
	randomInt                 // low ≤ n < high
	randomString              // low letters and digits
	drawn                     // a number of a distribution
)

// placeholder is one {{...}}.
type placeholder struct {
	word      word
	low, high int64
	draw      draw // of drawn
}

// parsePlaceholder reads what stands between {{ and }}.
func parsePlaceholder(inside string) (placeholder, error) {
	words := strings.Fields(inside)
	if len(words) == 0 {
		return placeholder{}, errors.New("an empty placeholder; there are: " + knownWords)
	}
	p := placeholder{}
	var args []*int64
	switch words[0] {
	case ".RequestNumber":
		p.word = requestNumber
	case ".MessageNumber":
		p.word = messageNumber
	case ".UUID":
		p.word = callUUID
	case "newUUID":
		p.word = newUUID
	case "randomInt":
		p.word, args = randomInt, []*int64{&p.low, &p.high}
	case "randomString":
		p.word, args = randomString, []*int64{&p.low}
	case ".Timestamp", ".TimestampUnix", ".TimestampUnixMilli", ".TimestampUnixNano":
		return p, fmt.Errorf("{{%s}}: there is no time in requests, so that two runs send the same; there are: %s", words[0], knownWords)
	case "uniform", "exponential", "mix":
		p.word = drawn
		var err error
		p.draw, err = parseDraw(words)
		return p, err
	default:
		return p, fmt.Errorf("no placeholder is called %s; there are: %s", schema.OneLine(words[0]), knownWords)
	}
	if err := readNumbers(words, args); err != nil {
		return p, err
	}
	return p, p.check()
}

// readNumbers reads what stands behind the first word.
func readNumbers(words []string, into []*int64) error {
	if len(words)-1 != len(into) {
		return fmt.Errorf("%s takes %d numbers, not %d", words[0], len(into), len(words)-1)
	}
	for i, text := range words[1:] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %q is not a whole number of 64 bits", words[0], schema.OneLine(text))
		}
		*into[i] = n
	}
	return nil
}

func (p placeholder) check() error {
	switch {
	case p.word == randomInt && p.low >= p.high:
		return fmt.Errorf("%s: there is no number from %d up to and without %d", p, p.low, p.high)
	case p.word == randomString && (p.low < 1 || p.low > maxRandomString):
		return fmt.Errorf("%s: write a length from 1 to %d", p, maxRandomString)
	}
	return nil
}

// String returns the placeholder as it is written.
func (p placeholder) String() string {
	switch p.word {
	case requestNumber:
		return "{{.RequestNumber}}"
	case messageNumber:
		return "{{.MessageNumber}}"
	case callUUID:
		return "{{.UUID}}"
	case newUUID:
		return "{{newUUID}}"
	case randomInt:
		return fmt.Sprintf("{{randomInt %d %d}}", p.low, p.high)
	case randomString:
		return fmt.Sprintf("{{randomString %d}}", p.low)
	case drawn:
		return "{{" + p.draw.text + "}}"
	}
	return "{{?}}"
}

// isNumber reports whether it may fill in a number; any may fill in a text.
func (p placeholder) isNumber() bool {
	return p.word == requestNumber || p.word == messageNumber || p.word == randomInt || p.word == drawn
}

// limits are the least and the greatest number that it gives.
func (p placeholder) limits() (least, greatest int64) {
	if p.word == randomInt {
		return p.low, p.high - 1
	}
	if p.word == drawn {
		return p.draw.limits()
	}
	return 0, math.MaxInt32
}

// size returns the most bytes that it takes as a text.
func (p placeholder) size() int {
	switch p.word {
	case callUUID, newUUID:
		return 36
	case randomString:
		return int(p.low)
	case drawn:
		return mostDrawn
	case requestNumber, messageNumber, randomInt:
	}
	return 20
}

// spot says which value of a placeholder is wanted. Two spots that differ have
// values that have nothing to do with each other; the same spot has the same value in
// every run and on every machine.
type spot struct {
	seed    uint64
	call    uint64
	message uint64 // in its call
	hole    uint64 // in its message
}

// draws returns the random numbers of a spot. Both odd factors keep the spots of a
// call apart; PCG scatters what differs by little.
func (s spot) draws() *rand.PCG {
	return rand.NewPCG(s.seed^(s.message+1)*0x9e3779b97f4a7c15^(s.hole+1)*0xd1342543de82ef95, s.call)
}

// number returns the value of a placeholder that isNumber.
func (p placeholder) number(s spot) int64 {
	switch p.word {
	case requestNumber:
		return int64(s.call & math.MaxInt32)
	case messageNumber:
		return int64(s.message & math.MaxInt32)
	case drawn:
		return int64(math.Round(p.draw.value(s.share())))
	case callUUID, newUUID, randomInt, randomString:
	}
	// The high half of a product is even over the range but for 2^-64 of its width.
	high, _ := bits.Mul64(s.draws().Uint64(), uint64(p.high)-uint64(p.low))
	return int64(uint64(p.low) + high)
}

// append adds the value of a placeholder as a text.
func (p placeholder) append(dst []byte, s spot) []byte {
	switch p.word {
	case callUUID:
		return appendUUID(dst, spot{seed: s.seed, call: s.call, hole: maxHoles}.draws())
	case newUUID:
		return appendUUID(dst, s.draws())
	case randomString:
		return appendLetters(dst, s.draws(), int(p.low))
	case drawn:
		return strconv.AppendFloat(dst, p.draw.value(s.share()), 'g', -1, 64)
	case requestNumber, messageNumber, randomInt:
	}
	return strconv.AppendInt(dst, p.number(s), 10)
}

// appendUUID adds a random UUID: version 4 of RFC 9562, section 5.4.
func appendUUID(dst []byte, draws *rand.PCG) []byte {
	a, b := draws.Uint64(), draws.Uint64()
	raw := [16]byte{}
	for i := range 8 {
		raw[i], raw[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	for i, upTo := range [...]int{4, 6, 8, 10, 16} {
		from := [...]int{0, 4, 6, 8, 10}[i]
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, raw[from:upTo])
	}
	return dst
}

// appendLetters adds letters and digits, ten from each draw.
func appendLetters(dst []byte, draws *rand.PCG, length int) []byte {
	for drawn, left := uint64(0), 0; length > 0; length-- {
		if left == 0 {
			drawn, left = draws.Uint64(), 10
		}
		var letter uint64
		letter, drawn = bits.Mul64(drawn, uint64(len(letters)))
		dst = append(dst, letters[letter])
		left--
	}
	return dst
}
