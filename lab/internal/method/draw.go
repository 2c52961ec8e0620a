package method

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/schema"
)

// mostDraw is the greatest number that a draw may be about.
const mostDraw = 1e9

// mostDrawn is how many bytes a drawn number takes as a text.
const mostDrawn = 24

// draw is a random number with decimals, such as how long a call works. Fields of whole
// numbers get it rounded.
//
// Shape: made by parseDraw.
type draw struct {
	text string // as it is written
	// low and high are the ends of a uniform draw.
	low, high float64
	// values and sums are those of a mix: a value is drawn if the share is below its
	// sum and not below the one before. The last sum is 1. Exponential draws have means
	// for values.
	values, sums []float64
	exponential  bool
}

// parseDraw reads uniform MIN MAX, exponential MEAN or MEAN:WEIGHT pairs, and mix with
// VALUE:WEIGHT pairs.
func parseDraw(words []string) (d draw, err error) {
	d.text, d.exponential = strings.Join(words, " "), words[0] == "exponential"
	if words[0] == "mix" || d.exponential && len(words) > 1 && strings.Contains(words[1], ":") {
		err = d.readMix(words[0], words[1:])
		return d, err
	}
	into := []*float64{&d.low, &d.high}
	if d.exponential {
		d.values, d.sums = []float64{0}, []float64{1}
		into = []*float64{&d.values[0]}
	}
	if len(words)-1 != len(into) {
		return d, fmt.Errorf("%s takes %d numbers, not %d", words[0], len(into), len(words)-1)
	}
	for i, text := range words[1:] {
		if *into[i], err = drawNumber(words[0], text); err != nil {
			return d, err
		}
	}
	if words[0] == "uniform" && d.low >= d.high {
		return d, fmt.Errorf("{{%s}}: there is no number from %v up to and without %v", d.text, d.low, d.high)
	}
	return d, nil
}

func drawNumber(word, text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= mostDraw) {
		return 0, fmt.Errorf("%s: %q is not a number from 0 to %.0f", word, schema.OneLine(text), mostDraw)
	}
	return n, nil
}

func (d *draw) readMix(word string, pairs []string) error {
	var sum float64
	for _, pair := range pairs {
		value, weight, ok := strings.Cut(pair, ":")
		if !ok {
			return fmt.Errorf("%s: %q is not VALUE:WEIGHT, such as 5:90", word, schema.OneLine(pair))
		}
		v, err := drawNumber(word, value)
		if err != nil {
			return err
		}
		w, err := drawNumber(word, weight)
		if err != nil {
			return err
		}
		sum += w
		d.values, d.sums = append(d.values, v), append(d.sums, sum)
	}
	if sum == 0 {
		return fmt.Errorf("%s takes VALUE:WEIGHT pairs with a weight above 0, such as %s 5:90 200:10", word, word)
	}
	for i := range d.sums {
		d.sums[i] /= sum
	}
	return nil
}

// value returns what a share from 0 up to and without 1 stands for: the quantile, but for
// an exponential mix, which is first divided among its means.
func (d *draw) value(share float64) float64 {
	if d.values == nil {
		return d.low + share*(d.high-d.low)
	}
	below := 0.0
	for i, sum := range d.sums {
		if share >= sum {
			below = sum
			continue
		}
		if d.exponential {
			return -d.values[i] * math.Log1p(-(share-below)/(sum-below))
		}
		return d.values[i]
	}
	return d.values[len(d.values)-1]
}

// limits are the least and the greatest whole number that it gives.
func (d *draw) limits() (least, greatest int64) {
	const last = 1 - 1.0/(1<<53)
	low, high := d.value(0), d.value(last)
	for _, v := range d.values {
		if d.exponential {
			v *= -math.Log1p(-last)
		}
		low, high = min(low, v), max(high, v)
	}
	return int64(math.Floor(low)), int64(math.Ceil(high))
}

// share is the first random number of a spot, from 0 up to and without 1.
func (s spot) share() float64 { return float64(s.draws().Uint64()>>11) / (1 << 53) }
