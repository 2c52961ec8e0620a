package traffic

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Piece is a stretch of time in which a level goes from one value to another in a
// straight line. A piece without length is a jump.
type Piece struct {
	Length   time.Duration
	From, To float64
}

// area is the sum of the level over the piece, in levels times seconds.
func (p Piece) area() float64 { return p.Length.Seconds() * (p.From + p.To) / 2 }

func (p Piece) at(t time.Duration) float64 {
	if p.Length <= 0 {
		return p.To
	}
	return p.From + (p.To-p.From)*float64(t)/float64(p.Length)
}

// reach returns the moment at which the area from the beginning on is a.
func (p Piece) reach(a float64) time.Duration {
	if a <= 0 {
		return 0 // the root would be 0/0 where the level begins with 0
	}
	// With the slope s, a = from·x + s·x²/2. This form of the root also holds
	// where s is 0, and loses no digits where it is small.
	s := (p.To - p.From) / p.Length.Seconds()
	x := 2 * a / (p.From + math.Sqrt(max(p.From*p.From+2*s*a, 0)))
	return min(time.Duration(math.Round(x*float64(time.Second))), p.Length)
}

// Profile is a level over time: calls per second of an open loop, callers of a
// closed one.
type Profile []Piece

// Length is how long the profile lasts.
func (p Profile) Length() (sum time.Duration) {
	for _, piece := range p {
		sum += piece.Length
	}
	return sum
}

// Area is the sum of the level over time: how many calls are due, when the level
// is calls per second.
func (p Profile) Area() (sum float64) {
	for _, piece := range p {
		sum += piece.area()
	}
	return sum
}

// Most is the highest level.
func (p Profile) Most() (most float64) {
	for _, piece := range p {
		most = max(most, piece.From, piece.To)
	}
	return most
}

// start is the level with which the profile begins, behind its first jumps.
func (p Profile) start() float64 {
	for _, piece := range p {
		if piece.Length > 0 {
			return piece.From
		}
	}
	return 0
}

// after returns the profile with a stretch of its first level before it, and at
// least of the level 1, so that something warms up.
func (p Profile) after(warmup time.Duration) Profile {
	if warmup <= 0 {
		return p
	}
	level := max(p.start(), 1)
	return append(Profile{{Length: warmup, From: level, To: level}}, p...)
}

// nextAbove returns the first moment from t on at which the level is h or higher.
func (p Profile) nextAbove(h float64, t time.Duration) (time.Duration, bool) {
	var begin time.Duration
	for _, piece := range p {
		end := begin + piece.Length
		if t < end {
			now := max(t, begin)
			if piece.at(now-begin) >= h {
				return now, true
			}
			if piece.To >= h { // it rises
				share := (h - piece.From) / (piece.To - piece.From)
				return begin + time.Duration(math.Ceil(share*float64(piece.Length))), true
			}
		}
		begin = end
	}
	return 0, false
}

// String writes the profile as ParseRate reads it.
func (p Profile) String() string {
	var pieces []string
	for _, piece := range p {
		text := fmt.Sprintf("%v:%v", piece.Length, piece.From)
		if piece.To != piece.From {
			text += fmt.Sprintf("..%v", piece.To)
		}
		pieces = append(pieces, text)
	}
	return strings.Join(pieces, ",")
}
