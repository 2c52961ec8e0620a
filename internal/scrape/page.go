package scrape

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
)

// reader reads a text page line by line: Prometheus' text format 0.0.4, or
// OpenMetrics 1.0. Nothing that it returns is a copy.
//
// Source: prometheus.io/docs/instrumenting/exposition_formats, and the OpenMetrics
// specification.
type reader struct {
	left []byte
	line int // the number of the one that was read last, from 1 on
}

// sample is a line with a value.
type sample struct {
	series   []byte // the name with its labels, as they are written
	name     []byte
	labels   []byte // between the braces
	value    float64
	exemplar []byte // with its braces, its value and its time; nil if there is none
}

// errSample is a line that is no sample.
var errSample = errors.New("not a sample")

// next returns the next line without blanks around it; false behind the last one.
// Empty lines are left out.
func (p *reader) next() (line []byte, ok bool) {
	for len(p.left) > 0 {
		end := bytes.IndexByte(p.left, '\n')
		if line = p.left; end >= 0 {
			line = line[:end]
		}
		p.left = p.left[min(len(line)+1, len(p.left)):]
		p.line++
		if line = bytes.TrimRight(line, " \t\r"); len(line) > 0 && isBlank(line[0]) {
			line = bytes.TrimLeft(line, " \t")
		}
		if len(line) > 0 {
			return line, true
		}
	}
	return nil, false
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }

// parseSample reads a line that is no comment.
func parseSample(line []byte) (s sample, err error) {
	if line[0] == '{' {
		return parseQuoted(line)
	}
	end := nameEnd(line)
	if end == 0 {
		return s, errSample
	}
	s.name = line[:end]
	rest := bytes.TrimLeft(line[end:], " \t")
	s.series = s.name
	if len(rest) > 0 && rest[0] == '{' {
		closing := closingBrace(rest)
		if closing < 0 {
			return s, errSample
		}
		s.labels = rest[1:closing]
		s.series = line[:len(line)-len(rest)+closing+1]
		rest = bytes.TrimLeft(rest[closing+1:], " \t")
	} else if len(rest) == len(line)-end {
		return s, errSample // no blank behind the name
	}
	err = s.parseValue(rest)
	return s, err
}

// parseQuoted reads a sample whose name is among its labels, in quotes, because it has
// other letters than names used to have.
func parseQuoted(line []byte) (s sample, err error) {
	closing := closingBrace(line)
	if closing < 0 {
		return s, errSample
	}
	name, rest, ok := quoted(bytes.TrimLeft(line[1:closing], " \t"))
	rest = bytes.TrimLeft(rest, " \t")
	if !ok || len(name) == 0 || len(rest) > 0 && rest[0] != ',' {
		return s, errSample
	}
	s.name, s.series = []byte(legal(unescaped(name, true), ':')), line[:closing+1]
	s.labels = bytes.TrimPrefix(rest, []byte(","))
	err = s.parseValue(bytes.TrimLeft(line[closing+1:], " \t"))
	return s, err
}

// quoted cuts a text in quotes off, without undoing what is escaped in it.
func quoted(text []byte) (inner, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return nil, text, false
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[1:i], text[i+1:], true
		}
	}
	return nil, text, false
}

// legal returns a name in the letters that names used to have, as Prometheus writes it
// for those who know no others: with underscores. Colons become what they are to become.
func legal(name string, colon rune) string {
	if nameEnd([]byte(name)) == len(name) && (colon == ':' || strings.IndexByte(name, ':') < 0) {
		return name
	}
	first := true
	return strings.Map(func(c rune) rune {
		digit := '0' <= c && c <= '9' && !first
		first = false
		switch {
		case c == ':':
			return colon
		case digit, 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
			return c
		}
		return '_'
	}, name)
}

// parseValue reads what stands behind the series: a value, maybe a timestamp, maybe
// an exemplar.
func (s *sample) parseValue(rest []byte) (err error) {
	value, rest := word(rest)
	if s.value, err = parseFloat(value); err != nil {
		return err
	}
	if len(rest) > 0 && rest[0] != '#' {
		var timestamp []byte
		if timestamp, rest = word(rest); !isNumber(timestamp) {
			return errSample
		}
	}
	switch {
	case len(rest) == 0:
		return nil
	case rest[0] != '#':
		return errSample
	}
	s.exemplar = bytes.TrimLeft(rest[1:], " \t")
	if len(s.exemplar) == 0 || s.exemplar[0] != '{' {
		return errSample
	}
	return nil
}

// word cuts off what stands in front of the next blank.
func word(text []byte) (first, rest []byte) {
	for i, c := range text {
		if isBlank(c) {
			return text[:i], bytes.TrimLeft(text[i:], " \t")
		}
	}
	return text, nil
}

// nameEnd returns the length of the metric name at the beginning; 0 if there is none.
func nameEnd(line []byte) int {
	for i, c := range line {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', c == '_', c == ':', '0' <= c && c <= '9' && i > 0:
		default:
			return i
		}
	}
	return len(line)
}

// closingBrace returns where the brace is that closes the one at the beginning; -1 if
// there is none. Braces in quotes are text.
func closingBrace(text []byte) int {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return i
		}
	}
	return -1
}

// parseFloat reads a value as Prometheus does: no underscores, no exponents of two.
func parseFloat(text []byte) (float64, error) {
	if bytes.ContainsAny(text, "pP_xX") {
		return 0, errSample
	}
	value, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return 0, errSample
	}
	return value, nil
}

func isNumber(text []byte) bool {
	_, err := parseFloat(text)
	return err == nil
}

// remark is a comment with a meaning.
type remark struct {
	word []byte // HELP, TYPE, UNIT or EOF
	name []byte
	text []byte
}

// parseRemark reads a line that begins with #. Others than the four are comments.
func parseRemark(line []byte) (r remark, ok bool) {
	r.word, line = word(bytes.TrimLeft(line[1:], " \t"))
	switch string(r.word) {
	case "EOF":
		return r, len(line) == 0
	case "HELP", "TYPE", "UNIT":
		if name, rest, ok := quoted(line); ok {
			r.name, r.text = []byte(legal(unescaped(name, true), ':')), bytes.TrimLeft(rest, " \t")
			return r, len(r.name) > 0
		}
		r.name, r.text = word(line)
		return r, len(r.name) > 0 && nameEnd(r.name) == len(r.name)
	}
	return r, false
}
