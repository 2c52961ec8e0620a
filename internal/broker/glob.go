package broker

// Matches reports whether a channel matches a pattern of Redis.
//
// Shape: "*" is any bytes, "?" one byte, "[ab-d]" one of these, "[^ab]" one of all
// others, "\" takes the next byte as it is, also within brackets. A bracket that is
// not closed ends with the pattern; the ends of a range may be in either order. The
// empty channel matches only the empty pattern, not even "*".
// Units: bytes, not letters: "?" is half of an "ü".
// Limits: the time is at most the product of both lengths.
// Source: Redis' manual of PSUBSCRIBE; a test compares corner cases with Redis.
func Matches(pattern, channel string) bool {
	if channel == "" {
		return pattern == ""
	}
	// star is the index after the last "*", from which to try again with one byte more.
	p, c, star, from := 0, 0, -1, 0
	for c < len(channel) {
		switch next, ok := matchOne(pattern, p, channel[c]); {
		case p < len(pattern) && pattern[p] == '*':
			if p++; p == len(pattern) {
				return true // the rest may be anything
			}
			star, from = p, c
		case ok:
			p, c = next, c+1
		case star >= 0:
			from++
			p, c = star, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchOne matches one byte against the pattern at p, which is not a star, and returns
// the index at which the pattern goes on.
func matchOne(pattern string, p int, b byte) (next int, ok bool) {
	if p >= len(pattern) {
		return p, false
	}
	switch pattern[p] {
	case '?':
		return p + 1, true
	case '[':
		return matchSet(pattern, p+1, b)
	case '\\':
		if p+1 < len(pattern) {
			p++
		}
	}
	return p + 1, pattern[p] == b
}

// matchSet matches one byte against a bracket, whose inside begins at p.
func matchSet(pattern string, p int, b byte) (next int, ok bool) {
	negated := p < len(pattern) && pattern[p] == '^'
	if negated {
		p++
	}
	found := false
	for ; p < len(pattern) && pattern[p] != ']'; p++ {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			found = found || pattern[p] == b
		case p+2 < len(pattern) && pattern[p+1] == '-':
			low, high := min(pattern[p], pattern[p+2]), max(pattern[p], pattern[p+2])
			found = found || low <= b && b <= high
			p += 2
		default:
			found = found || pattern[p] == b
		}
	}
	return min(p+1, len(pattern)), found != negated
}

// Work is the cost of comparing a pattern with channels: about how many bytes are compared
// for each byte of the worst channel. A pattern without text after its first star costs
// nothing beside its own length.
//
// Units: 0 up to the length. A text whose beginning is not repeated in it has 1, "aaaa"
// has 4; a text with "?" or a bracket counts with its length.
func Work(pattern string) (work int) {
	first := true
	for pattern != "" {
		text, rest, wild := untilStar(pattern)
		switch {
		case first || len(text) == 0:
		case wild:
			work += len(text)
		default:
			work += repetition(text)
		}
		pattern, first = rest, false
	}
	return work
}

// untilStar cuts a pattern at its first star. wild reports whether the text before it has
// "?" or a bracket.
func untilStar(pattern string) (text []byte, rest string, wild bool) {
	for p := 0; p < len(pattern); {
		next := p + 1
		switch pattern[p] {
		case '*':
			return text, pattern[next:], wild
		case '?':
			wild = true
		case '[':
			wild = true
			next, _ = matchSet(pattern, next, 0)
		case '\\':
			if next < len(pattern) {
				p, next = next, next+1
			}
		}
		text = append(text, pattern[p])
		p = next
	}
	return text, "", wild
}

// repetition is how often a text, or a beginning of it, repeats itself, rounded up: so
// many of its beginnings overlap in the worst channel. The table of Knuth, Morris and
// Pratt says by how much a beginning may be moved over itself.
func repetition(text []byte) (most int) {
	most = 1
	overlap := make([]int, len(text)+1) // of the first n bytes with themselves
	for n := 1; n < len(text); n++ {
		k := overlap[n]
		for k > 0 && text[n] != text[k] {
			k = overlap[k]
		}
		if text[n] == text[k] {
			k++
		}
		overlap[n+1] = k
		moved := n + 1 - k
		most = max(most, (n+moved)/moved) // (n+1)/moved, rounded up
	}
	return most
}
