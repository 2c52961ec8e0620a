package service

import (
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/config"
	"github.com/cabrank/cabrank/internal/rank"
)

// Every word that the configuration takes means something to the rank: what it
// does not know would be the default without a word.
func TestRankKnowsTheWordsOfTheConfiguration(t *testing.T) {
	seen := 0
	for _, key := range config.Keys() {
		for word := range strings.SplitSeq(key.Allowed(), ", ") {
			switch key.Name {
			case "balance":
				if word, _, _ = strings.Cut(word, ":"); word == "or of " {
					continue
				}
				if b, known := rank.ParseBalance(word); !known || b.String() != word {
					t.Errorf("balance: %s is %v to the rank", word, b)
				}
				seen++
			case "on_cancel":
				if word != "auto" && onCancel(word) == 0 {
					t.Errorf("on_cancel: %s is nothing to the rank", word)
				}
				seen++
			}
		}
	}
	if seen != 7+4 {
		t.Errorf("%d words, want 7 policies and 4 for cancelled calls", seen)
	}
}
