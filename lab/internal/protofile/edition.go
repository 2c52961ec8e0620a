package protofile

import "strings"

// known2023 returns the text of a file of edition 2024 as one of edition 2023, which
// protocompile knows, with every other word where it was, and any other text as it is.
// What 2024 adds changes neither JSON nor the encoding: who may use a type (export and
// local before message and enum), and imports of files for options alone.
//
// Source: Protobuf Editions, "Edition 2024" and "Language Specification".
func known2023(text string) (older string) {
	w := words{text: text}
	if w.next() != "edition" || w.next() != "=" {
		return text
	}
	if edition := w.next(); edition != `"2024"` && edition != `'2024'` {
		return text
	}
	changed := []byte(text)
	copy(changed[w.from+1:], "2023")
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if changed[i] != '\n' {
				changed[i] = ' '
			}
		}
	}
	for before, word := "", w.next(); word != ""; before, word = word, w.next() {
		switch began := before == ";" || before == "{" || before == "}"; {
		case !began:
		case word == "import" && w.peek(1) == "option":
			word = w.next()
			blank(w.from, w.at)
		case (word == "export" || word == "local") && (w.peek(1) == "message" || w.peek(1) == "enum") && w.peek(2) != "=":
			blank(w.from, w.at)
			word = before
		}
	}
	return string(changed)
}

// words goes from word to word of a text, over comments.
type words struct {
	text     string
	from, at int // of the last word, and behind it
}

// next returns the next word: a name, a number, a text with its quotes, or a sign; ""
// at the end.
func (w *words) next() string {
	w.skip()
	rest := w.text[w.at:]
	if rest == "" {
		return ""
	}
	w.from = w.at
	w.at += length(rest)
	return w.text[w.from:w.at]
}

// peek returns the word that comes so many words later.
func (w *words) peek(later int) (word string) {
	ahead := *w
	for range later {
		word = ahead.next()
	}
	return word
}

// skip goes over blanks and comments.
func (w *words) skip() {
	for {
		rest := w.text[w.at:]
		trimmed := strings.TrimLeft(rest, " \t\r\n\v\f")
		w.at += len(rest) - len(trimmed)
		var end string
		switch {
		case strings.HasPrefix(trimmed, "//"):
			end = "\n"
		case strings.HasPrefix(trimmed, "/*"):
			end = "*/"
		default:
			return
		}
		if i := strings.Index(trimmed[2:], end); i >= 0 {
			w.at += 2 + i + len(end)
		} else {
			w.at = len(w.text)
		}
	}
}

// length is that of the word with which a text begins, octets.
func length(text string) int {
	if quote := text[0]; quote == '"' || quote == '\'' {
		for i := 1; i < len(text); i++ {
			switch text[i] {
			case '\\':
				i++
			case quote, '\n':
				return i + 1
			}
		}
		return len(text)
	}
	rest := strings.TrimLeftFunc(text, func(r rune) bool {
		return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	})
	return max(len(text)-len(rest), 1)
}
