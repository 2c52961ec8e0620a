package traffic

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
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

// At is the level at a moment since its beginning.
func (p Piece) At(t time.Duration) float64 {
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

// Profile is a level over time: calls per second of an open loop, callers of a closed one.
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

// after returns the profile with a stretch of its first level before it, and at
// least of the level 1, so that something warms up.
func (p Profile) after(warmup time.Duration) Profile {
	if warmup <= 0 {
		return p
	}
	level := 1.0
	if i := slices.IndexFunc(p, func(piece Piece) bool { return piece.Length > 0 }); i >= 0 { // behind its first jumps
		level = max(p[i].From, 1)
	}
	return append(Profile{{Length: warmup, From: level, To: level}}, p...)
}

// nextAbove returns the first moment from t on at which the level is h or higher.
func (p Profile) nextAbove(h float64, t time.Duration) (time.Duration, bool) {
	var begin time.Duration
	for _, piece := range p {
		end := begin + piece.Length
		if t < end {
			now := max(t, begin)
			if piece.At(now-begin) >= h {
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

const (
	// MostRate is the highest rate, in calls per second: it keeps the mean gap between
	// two calls above a microsecond.
	MostRate    = 1_000_000
	mostCallers = 100_000        // how many callers a closed loop may have: each is a goroutine
	longest     = 24 * time.Hour // how long a plan may last
	mostPieces  = 1000           // bounds a profile
)

// ParseRate reads the rate of an open loop that lasts for a duration.
//
// Shape: RATE[..RATE], or pieces with commas between them, each LENGTH:RATE[..RATE]. Two
// rates are a ramp from one to the other.
//
//	500                      500 calls per second, as is 500/s
//	100..500                 a ramp over the whole duration
//	10s:100,1s:2000,10s:100  a burst
//
// Units: a rate is above 0 somewhere and at most 1,000,000 per second. With a duration
// of 0 every piece must have its length, and the duration is their sum.
// Errors: one line.
func ParseRate(text string, duration time.Duration) (Profile, error) {
	p, err := parsePieces(text, func(piece string) (Piece, error) {
		from, to, ramp := strings.Cut(piece, "..")
		if !ramp {
			to = from
		}
		low, err := parseLevel(from)
		if err != nil {
			return Piece{}, err
		}
		high, err := parseLevel(to)
		return Piece{From: low, To: high}, err
	})
	if err != nil {
		return nil, err
	}
	if err := p.last(duration); err != nil {
		return nil, err
	}
	if p.Area() <= 0 {
		return nil, errors.New("no call would be made: give a rate above 0")
	}
	return p, nil
}

// last gives a piece without a length the duration, and holds others against it.
func (p Profile) last(duration time.Duration) error {
	alone := len(p) == 1 && p[0].Length < 0
	switch {
	case alone && duration == 0:
		return errors.New("how long? give --duration")
	case alone:
		p[0].Length = duration
	case slices.ContainsFunc(p, func(piece Piece) bool { return piece.Length < 0 }):
		return errors.New("one of several pieces has no length: want LENGTH:RATE, such as 10s:100,1s:2000")
	case duration != 0 && p.Length() != duration:
		return fmt.Errorf("the pieces last %v, and --duration is %v: leave one of them out", p.Length(), duration)
	}
	return nil
}

// ParseStages reads the callers of a closed loop over time, in the form of k6.
//
// Shape: LENGTH:CALLERS with commas between them, such as 30s:30,1m:60,20s:0. In
// each stage the number goes in a straight line from that of the stage before it to
// its own; the first begins with 0. A stage of 0s is a jump: 0s:60,1m:60.
// Units: at most 100,000 callers, and some must be above 0.
// Errors: one line.
func ParseStages(text string) (Profile, error) {
	level := 0.0
	p, err := parsePieces(text, func(piece string) (Piece, error) {
		n, err := strconv.ParseUint(piece, 10, 32)
		if err != nil || n > mostCallers {
			return Piece{}, fmt.Errorf("%.40q is not a number of callers from 0 to %d", piece, mostCallers)
		}
		next := Piece{From: level, To: float64(n)}
		level = next.To
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	for _, piece := range p {
		if piece.Length < 0 {
			return nil, errors.New("a stage has no length: want LENGTH:CALLERS, such as 30s:30")
		}
	}
	if p.Area() <= 0 {
		return nil, errors.New("nobody would call: give a stage with a length and callers")
	}
	return p, nil
}

// parsePieces reads what rates and stages have in common. A piece without a length
// has the length -1.
func parsePieces(text string, level func(string) (Piece, error)) (p Profile, err error) {
	parts := strings.Split(text, ",")
	if len(parts) > mostPieces {
		return nil, fmt.Errorf("%d pieces, at most %d are read", len(parts), mostPieces)
	}
	var sum time.Duration
	for _, part := range parts {
		length := time.Duration(-1)
		before, rest, timed := strings.Cut(strings.TrimSpace(part), ":")
		if !timed {
			rest = before
		} else if length, err = time.ParseDuration(before); err != nil || length < 0 || length > longest {
			return nil, fmt.Errorf("%.40q is not a length of time from 0s to %v, such as 30s", before, longest)
		}
		piece, err := level(rest)
		if err != nil {
			return nil, err
		}
		piece.Length = length
		if sum += max(length, 0); sum > longest {
			return nil, fmt.Errorf("the pieces last more than %v", longest)
		}
		p = append(p, piece)
	}
	return p, nil
}

func parseLevel(text string) (float64, error) {
	n, err := strconv.ParseFloat(strings.TrimSuffix(text, "/s"), 64)
	if err != nil || math.IsNaN(n) || n < 0 || n > MostRate {
		return 0, fmt.Errorf("%.40q is not a rate from 0 to %d calls per second, such as 500, 100..500 or 10s:100,1s:2000", text, MostRate)
	}
	return n, nil
}
