package config

import (
	"errors"
	"fmt"
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
	switch {
	case len(items) > maxArguments:
		return fmt.Errorf("%d words are too many", len(items))
	case len(items) > 0 && strings.TrimSpace(items[0]) == "":
		return errors.New("has no program: its first word is empty")
	}
	for _, item := range items {
		if strings.ContainsRune(item, 0) {
			return errors.New("has a zero byte, which no argument can have")
		}
	}
	*field.(*[]string) = items
	return nil
}

func (commandLine) items(field any) []string { return *field.(*[]string) }

func (k commandLine) show(field any) string {
	words := k.items(field)
	if len(words) == 0 {
		return none
	}
	for _, word := range words {
		if !forms["word"].MatchString(word) {
			return inList(words, strconv.Quote)
		}
	}
	return strings.Join(words, " ")
}

func (k commandLine) allowed() string {
	return fmt.Sprintf("a program and its arguments, at most %d words, or %s", maxArguments, none)
}
