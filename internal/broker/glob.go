package broker

// Matches reports whether a channel matches a pattern as Redis understands it.
//
// Shape: "*" is any bytes, "?" one byte, "[ab-d]" one of these, "[^ab]" one of all
// others, "\" takes the next byte as it is, also within brackets. A bracket that is
// not closed ends with the pattern; the ends of a range may be in either order. The
// empty channel matches the empty pattern alone, not even "*".
// Units: bytes, not letters: "?" is half of an "ü".
// Limits: the time is at most the product of both lengths.
// Source: Redis' manual of PSUBSCRIBE; the corners are held by a comparison with Redis.
func Matches(pattern, channel string) bool {
	if channel == "" {
		return pattern == ""
	}
	// star is behind the last "*", from where to try again with one byte more in it.
	p, c, star, from := 0, 0, -1, 0
	for c < len(channel) {
		switch next, ok := matchOne(pattern, p, channel[c]); {
		case p < len(pattern) && pattern[p] == '*':
			p++
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

// matchOne matches one byte against what stands at p, which is no star, and returns
// where the pattern goes on.
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
