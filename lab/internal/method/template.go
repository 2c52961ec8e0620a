package method

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cabrank/cabrank/internal/schema"
)

const (
	maxPlaceholderBytes = 100       // bounds what stands between {{ and }}
	maxTemplateBytes    = 64 << 20  // bounds the text of a template: it is in memory as a whole
	maxDocuments        = 1_000_000 // bounds the requests that are used in turn
	maxHoles            = 10_000    // bounds the placeholders of one document
)

// template is a text with its placeholders found.
type template struct {
	name   string // for errors: a flag or a file
	text   []byte // as it was written
	holes  []hole // in the order of the text
	sample []byte // JSON of the same length, with ones in place of placeholders
}

// hole is where a placeholder stands.
//
// Units: begin and end are offsets in bytes.
type hole struct {
	placeholder

	begin, end int
}

// document is one JSON value of a template.
type document struct {
	*template

	begin, end int
}

// faultAt returns an error about a place, with line and column.
func (t *template) faultAt(offset int, form string, args ...any) error {
	before := t.text[:min(offset, len(t.text))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Errorf("%s:%d:%d: %s", t.name, line, column, fmt.Sprintf(form, args...))
}

func readTemplate(name string, text []byte) (*template, error) {
	if len(text) > maxTemplateBytes {
		return nil, fmt.Errorf("%s: has %d bytes, at most %d are allowed", name, len(text), maxTemplateBytes)
	}
	t := &template{name: name, text: text, sample: bytes.Clone(text)}
	for _, at := range holeForm.FindAllSubmatchIndex(text, -1) {
		begin, end := at[0], at[1]
		if at[2] < 0 || at[3]-at[2] > maxPlaceholderBytes {
			return nil, t.faultAt(begin, "{{ begins a placeholder, and there is no }} on its line")
		}
		p, err := parsePlaceholder(string(text[at[2]:at[3]]))
		if err != nil {
			return nil, t.faultAt(begin, "%s", err)
		}
		t.holes = append(t.holes, hole{placeholder: p, begin: begin, end: end})
		copy(t.sample[begin:end], bytes.Repeat([]byte("1"), end-begin))
	}
	return t, nil
}

// holeForm matches a placeholder, or what begins one that does not end on its line.
var holeForm = regexp.MustCompile(`\{\{(?:(.*?)\}\})?`)

func (d document) isArray() bool { return d.sample[d.begin] == '[' }

// cut returns the values that stand side by side in a part of the text, by lines or not,
// or in the array that it is.
func (d document) cut(array bool) (all []document, err error) {
	decoder := json.NewDecoder(bytes.NewReader(d.sample[d.begin:d.end]))
	if array {
		_, _ = decoder.Token() // the bracket
	}
	for !array || decoder.More() {
		var value json.RawMessage
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) && !array {
			return all, nil
		} else if err != nil {
			return nil, d.notJSON(err)
		}
		end := d.begin + int(decoder.InputOffset())
		all = append(all, document{d.template, end - len(value), end})
		if len(all) > maxDocuments {
			return nil, fmt.Errorf("%s: has more than %d requests", d.name, maxDocuments)
		}
	}
	return all, nil
}

func (d document) notJSON(err error) error {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return d.faultAt(d.begin+int(max(syntax.Offset-1, 0)), "not JSON: %s", schema.OneLine(syntax.Error()))
	}
	return d.faultAt(len(d.text), "not JSON: it ends in the middle of a value")
}

func (d document) inside() []hole {
	before := func(h hole, offset int) int { return cmp.Compare(h.begin, offset) }
	first, _ := slices.BinarySearchFunc(d.holes, d.begin, before)
	last, _ := slices.BinarySearchFunc(d.holes, d.end, before)
	return d.holes[first:last]
}

// fill returns a document with values in place of its placeholders.
func (d document) fill(at spot) []byte {
	from, text := d.begin, make([]byte, 0, d.end-d.begin)
	for i, h := range d.inside() {
		at.hole = uint64(i)
		text = h.append(append(text, d.text[from:h.begin]...), at)
		from = h.end
	}
	return append(text, d.text[from:d.end]...)
}

const (
	maxRandomString = 1 << 20 // bounds a random text, in bytes
	maxDraw         = 1e9     // the greatest number that a distribution may be about
	// letters are what a random text is made of.
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	// knownWords is what an error lists.
	knownWords = ".RequestNumber, .MessageNumber, .UUID, newUUID, randomInt MIN MAX, randomString LENGTH, " +
		"uniform MIN MAX, exponential MEAN or MEAN:WEIGHT and more pairs, mix VALUE:WEIGHT and more pairs"
)

// placeholder is one {{...}}.
//
// Shape: exactly one of text, whole and draw is set: a text has no number.
type placeholder struct {
	name string // as it is written
	text func(at spot) string
	// whole gives whole numbers, draw those with decimals for a share from 0 up to and
	// without 1. None is below least or above greatest.
	whole           func(at spot) int64
	draw            func(share float64) float64
	least, greatest string
}

func (p *placeholder) append(dst []byte, at spot) []byte {
	switch {
	case p.text != nil:
		return append(dst, p.text(at)...)
	case at.edge == least:
		return append(dst, p.least...)
	case at.edge == greatest:
		return append(dst, p.greatest...)
	case p.whole != nil:
		return strconv.AppendInt(dst, p.whole(at), 10)
	}
	return append(dst, decimals(p.draw(at.draws().Float64()))...)
}

func decimals(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

// edge is one of the two ends of what a number may be.
type edge int

const (
	least edge = iota + 1
	greatest
)

// spot says which value of a placeholder is wanted. Two spots that differ have
// values that have nothing to do with each other; the same spot has the same value in
// every run and on every machine.
type spot struct {
	seed    uint64
	call    uint64
	message uint64 // in its call
	hole    uint64 // in its message
	edge    edge   // in place of a value by chance; 0: none
}

// draws returns the random numbers of a spot. Both odd factors keep the spots of a
// call apart; PCG scatters what differs by little.
func (s spot) draws() *rand.Rand {
	return rand.New(rand.NewPCG(s.seed^(s.message+1)*0x9e3779b97f4a7c15^(s.hole+1)*0xd1342543de82ef95, s.call))
}

// uuid returns a random UUID: version 4 of RFC 9562, section 5.4.
func (s spot) uuid() string {
	draws := s.draws()
	raw := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, draws.Uint64()), draws.Uint64())
	raw[6], raw[8] = raw[6]&0x0f|0x40, raw[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", raw[:4], raw[4:6], raw[6:8], raw[8:10], raw[10:])
}

// parsePlaceholder reads what stands between {{ and }}.
func parsePlaceholder(inside string) (p placeholder, err error) {
	words := strings.Fields(inside)
	if len(words) == 0 {
		return p, errors.New("an empty placeholder; there are: " + knownWords)
	}
	p.name, p.least, p.greatest = "{{"+strings.Join(words, " ")+"}}", "0", strconv.Itoa(math.MaxInt32)
	switch words[0] {
	case ".RequestNumber":
		p.whole = func(at spot) int64 { return int64(at.call & math.MaxInt32) }
		_, err = arguments(words, 0, wholeNumber)
	case ".MessageNumber":
		p.whole = func(at spot) int64 { return int64(at.message & math.MaxInt32) }
		_, err = arguments(words, 0, wholeNumber)
	case ".UUID": // as if behind the last placeholder of the first message
		p.text = func(at spot) string { return spot{seed: at.seed, call: at.call, hole: maxHoles}.uuid() }
		_, err = arguments(words, 0, wholeNumber)
	case "newUUID":
		p.text = spot.uuid
		_, err = arguments(words, 0, wholeNumber)
	case "randomInt":
		err = p.randomInt(words)
	case "randomString":
		err = p.randomString(words)
	case "uniform":
		err = p.uniform(words)
	case "exponential", "mix":
		err = p.mix(words)
	case ".Timestamp", ".TimestampUnix", ".TimestampUnixMilli", ".TimestampUnixNano":
		err = fmt.Errorf("{{%s}}: there is no time in requests, so that two runs send the same; there are: %s", words[0], knownWords)
	default:
		err = fmt.Errorf("no placeholder is called %s; there are: %s", schema.OneLine(words[0]), knownWords)
	}
	return p, err
}

// arguments reads what stands behind the first word.
func arguments[N any](words []string, count int, read func(word, text string) (N, error)) ([]N, error) {
	if len(words)-1 != count {
		return nil, fmt.Errorf("%s takes %d numbers, not %d", words[0], count, len(words)-1)
	}
	var all []N
	for _, text := range words[1:] {
		n, err := read(words[0], text)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}

func wholeNumber(word, text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %q is not a whole number of 64 bits", word, schema.OneLine(text))
	}
	return n, nil
}

func decimal(word, text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= maxDraw) {
		return 0, fmt.Errorf("%s: %q is not a number from 0 to %.0f", word, schema.OneLine(text), maxDraw)
	}
	return n, nil
}

func (p *placeholder) randomInt(words []string) error {
	n, err := arguments(words, 2, wholeNumber)
	if err != nil {
		return err
	}
	if n[0] >= n[1] {
		return fmt.Errorf("%s: there is no number from %d up to and without %d", p.name, n[0], n[1])
	}
	p.least, p.greatest = strconv.FormatInt(n[0], 10), strconv.FormatInt(n[1]-1, 10)
	p.whole = func(at spot) int64 { return n[0] + int64(at.draws().Uint64N(uint64(n[1])-uint64(n[0]))) }
	return nil
}

func (p *placeholder) randomString(words []string) error {
	n, err := arguments(words, 1, wholeNumber)
	if err != nil {
		return err
	}
	if n[0] < 1 || n[0] > maxRandomString {
		return fmt.Errorf("%s: write a length from 1 to %d", p.name, maxRandomString)
	}
	p.text = func(at spot) string {
		text, draws := make([]byte, n[0]), at.draws()
		for i := range text {
			text[i] = letters[draws.IntN(len(letters))]
		}
		return string(text)
	}
	return nil
}

func (p *placeholder) uniform(words []string) error {
	n, err := arguments(words, 2, decimal)
	if err != nil {
		return err
	}
	if n[0] >= n[1] {
		return fmt.Errorf("%s: there is no number from %v up to and without %v", p.name, n[0], n[1])
	}
	p.least, p.greatest = decimals(n[0]), decimals(n[1])
	p.draw = func(share float64) float64 { return n[0] + share*(n[1]-n[0]) }
	return nil
}

// mix reads VALUE:WEIGHT pairs. Those of an exponential draw are means; it may have one
// alone, without a weight.
func (p *placeholder) mix(words []string) error {
	const last = 1 - 1.0/(1<<53) // the greatest share
	longest := 1.0               // value by mean
	if words[0] == "exponential" {
		longest = -math.Log1p(-last)
		if len(words) < 2 || !strings.Contains(words[1], ":") {
			if _, err := arguments(words, 1, decimal); err != nil {
				return err
			}
			words = []string{words[0], words[1] + ":1"}
		}
	}
	values, sums, err := pairs(words)
	if err != nil {
		return err
	}
	p.least, p.greatest = "0", decimals(slices.Max(values)*longest)
	p.draw = func(share float64) float64 {
		below, i := 0.0, 0
		for ; share >= sums[i]; i++ {
			below = sums[i]
		}
		if longest == 1 {
			return values[i]
		}
		// The rest of the share says which of the values around its mean it is.
		return -values[i] * math.Log1p(-min((share-below)/(sums[i]-below), last))
	}
	return nil
}

// pairs reads VALUE:WEIGHT. A value is drawn by the shares below its sum and not below
// the one before. The last sum is 1.
func pairs(words []string) (values, sums []float64, err error) {
	sum := 0.0
	for _, pair := range words[1:] {
		value, weight, ok := strings.Cut(pair, ":")
		if !ok {
			return nil, nil, fmt.Errorf("%s: %q is not VALUE:WEIGHT, such as 5:90", words[0], schema.OneLine(pair))
		}
		n, err := arguments([]string{words[0], value, weight}, 2, decimal)
		if err != nil {
			return nil, nil, err
		}
		sum += n[1]
		values, sums = append(values, n[0]), append(sums, sum)
	}
	if sum == 0 {
		return nil, nil, fmt.Errorf("%s takes VALUE:WEIGHT pairs with a weight above 0, such as %s 5:90 200:10", words[0], words[0])
	}
	for i := range sums {
		sums[i] /= sum
	}
	return values, sums, nil
}
