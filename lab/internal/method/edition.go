package method

import (
	"regexp"
	"strings"
)

// known2023 returns the text of a file of edition 2024 as one of edition 2023, which
// protocompile knows, with every other word where it was, and any other text as it is.
// What 2024 adds changes neither JSON nor the encoding: who may use a type (export and
// local before message and enum), and imports of files for options alone.
//
// Source: Protobuf Editions, "Edition 2024" and "Language Specification".
func known2023(text string) (older string) {
	if !strings.Contains(text, "2024") {
		return text
	}
	changed := []byte(text)
	var words []string // without blanks and comments
	var places []int   // of the words
	const word = `\s+|//[^\n]*|/\*(?s:.*?)\*/|\w+|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|(?s:.)`
	for _, at := range regexp.MustCompile(word).FindAllStringIndex(text, -1) {
		if w := text[at[0]:at[1]]; strings.TrimSpace(w) != "" && !strings.HasPrefix(w, "//") && !strings.HasPrefix(w, "/*") {
			words, places = append(words, w), append(places, at[0])
		}
	}
	if len(words) < 3 || words[0] != "edition" || words[1] != "=" || strings.Trim(words[2], `"'`) != "2024" {
		return text
	}
	copy(changed[places[2]+1:], "2023")
	for i := 3; i+2 < len(words); i++ {
		blank := -1
		switch before, word, next := words[i-1], words[i], words[i+1]; {
		case before != ";" && before != "{" && before != "}":
		case word == "import" && next == "option":
			blank = i + 1
		case (word == "export" || word == "local") && (next == "message" || next == "enum") && words[i+2] != "=":
			blank = i
		}
		if blank > 0 {
			copy(changed[places[blank]:], strings.Repeat(" ", len(words[blank])))
		}
	}
	return string(changed)
}
