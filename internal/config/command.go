package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxArguments bounds a command.
const maxArguments = 1000

// commandLine is the kind of *[]string fields that hold a program and its
// arguments: a list in the file, words with blanks between them elsewhere. No
// shell reads it.
type commandLine struct{}

func (k commandLine) set(field any, text string) error {
	text = strings.TrimSpace(text)
	switch {
	case text == none:
		return k.setItems(field, nil)
	case strings.HasPrefix(text, "["):
		n, err := parseText(text) // for arguments that have blanks
		if err != nil {
			return err
		}
		return storeItems(k, field, n)
	case strings.ContainsAny(text, `"'\`): // the text is not repeated: it may hold secrets
		return errors.New(`has quotes or backslashes, which no shell reads; did you mean a list, as ["program", "an argument"]?`)
	case text == "":
		return errors.New("is empty")
	}
	return k.setItems(field, strings.Fields(text))
}

func (k commandLine) setItems(field any, items []string) error {
	zero := slices.ContainsFunc(items, func(item string) bool { return strings.ContainsRune(item, 0) })
	err := wrong("",
		flaw{len(items) > maxArguments, fmt.Sprintf("%d words are too many", len(items))},
		flaw{len(items) > 0 && strings.TrimSpace(items[0]) == "", "has no program: its first word is empty"},
		flaw{zero, "has a zero byte, which no argument can have"})
	if err == nil {
		*field.(*[]string) = items
	}
	return err
}

func (commandLine) items(field any) []string { return *field.(*[]string) }

func (k commandLine) show(field any) string {
	words := k.items(field)
	if len(words) == 0 {
		return none
	}
	if slices.ContainsFunc(words, func(word string) bool { return !forms["word"].MatchString(word) }) {
		return inList(words, strconv.Quote)
	}
	return strings.Join(words, " ")
}

func (k commandLine) allowed() string {
	return fmt.Sprintf("a program and its arguments, at most %d words, or %s", maxArguments, none)
}
