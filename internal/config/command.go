package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/cabrank/cabrank/internal/spelling"
	"github.com/cabrank/cabrank/internal/worker"
)

// maxArguments bounds a command: a program and its arguments, which are a list in the file,
// and words with blanks between them elsewhere. No shell reads it.
const maxArguments = 1000

// readCommand takes a text apart.
func readCommand(into any, text string) error {
	text = strings.TrimSpace(text)
	switch {
	case strings.HasPrefix(text, "["):
		n, err := parseText(text) // for arguments that have blanks
		if err != nil {
			return err
		}
		items, err := textsOf(n)
		return cmp.Or(err, readArguments(into, items))
	case strings.ContainsAny(text, `"'\`): // the text is not repeated: it may hold secrets
		return errors.New(`has quotes or backslashes, which no shell reads; did you mean a list, as ["program", "an argument"]?`)
	case text == "":
		return errors.New("is empty")
	}
	return readArguments(into, strings.Fields(text))
}

// readArguments takes the words of a command. The text of a fault does not repeat them.
func readArguments(into any, words []string) error {
	zero := slices.ContainsFunc(words, func(word string) bool { return strings.ContainsRune(word, 0) })
	err := wrong("",
		flaw{len(words) > maxArguments, fmt.Sprintf("%d words are too many", len(words))},
		flaw{len(words) > 0 && strings.TrimSpace(words[0]) == "", "has no program: its first word is empty"},
		flaw{zero, "has a zero byte, which no argument can have"})
	*into.(*[]string) = words
	return err
}

// showCommand writes a command as it can be read back: as a list if a word needs quotes.
func showCommand(field any) string {
	words := *field.(*[]string)
	if slices.ContainsFunc(words, func(word string) bool { return !forms["word"].MatchString(word) }) {
		return inList(words, strconv.Quote)
	}
	return strings.Join(words, " ")
}

// placeholders returns what {addr} and the like may be called, without braces.
//
// They stand for the worker's address ("127.0.0.1:9000" or "unix:/path"), the
// parts of it, which only tcp has, the number of its place from 0, its name
// ("worker-1"), the calls that it gets at a time, and where its metrics page is asked for.
// They are replaced in the command of the workers, in the values of Workers.Env and in
// Hooks.
func placeholders() []string {
	return []string{"addr", "host", "port", "index", "worker", "slots", "threads", "metrics_port"}
}

// placeholdersFit refuses what a unix socket does not have (R19), and what is
// nearly a placeholder: workers would be told to listen on {prot}. The texts may hold secrets,
// so that a fault says where one is and not what it is.
func (c *Config) placeholdersFit() (faults Faults) {
	look := func(at Origin, key, place, text string) {
		for _, word := range forms["placeholder"].FindAllString(text, -1) {
			if fault := c.placeholderFault(at, key, place, word); fault.What != "" {
				faults = append(faults, fault)
				return // one line per text
			}
		}
	}
	lookAt := func(at Origin, key string, command []string) {
		for i, text := range command {
			look(at, key, fmt.Sprintf(" in word %d", i+1), text)
		}
	}
	lookAt(c.commandOrigin, "workers.command", c.Command)
	for _, name := range slices.Sorted(maps.Keys(c.Workers.Env)) {
		path := entryPath("workers.env", name)
		look(c.origins[path], path, "", c.Workers.Env[name])
	}
	for _, hook := range keysThat(func(k Key) bool { return k.Name == "hooks" })[0].parts() {
		lookAt(c.origins[hook.Name], hook.Name, *hook.field(c).(*[]string))
	}
	return faults
}

// placeholderFault is what is wrong with a word in braces, if anything is. place is where it
// is in the value of the key, if that is not all.
func (c *Config) placeholderFault(at Origin, key, place, word string) Fault {
	known := nearlyPlaceholder(strings.Trim(word, "{} \t"))
	switch {
	case strings.HasPrefix(word, "$"):
	case known != "" && word != "{"+known+"}":
		what := fmt.Sprintf("%s%s is no placeholder; did you mean {%s}?", word, place, known)
		return at.fault(key, what, "{"+strings.Join(placeholders(), "}, {")+"}")
	case c.Workers.Transport == "unix" && (word == "{port}" || word == "{host}"):
		what := fmt.Sprintf("a unix socket has no %s, which %s asks for%s", word, key, place)
		return c.FaultAt("workers.transport", what, "{addr} in its place, or transport tcp")
	}
	return Fault{}
}

// CommandFits judges another command for the workers of this configuration, one
// that did not come with it: that it has a program, and its placeholders. nil is none.
func (c *Config) CommandFits(command []string) error {
	switch {
	case command == nil:
		return nil
	case len(command) == 0, command[0] == "":
		return errors.New("worker command is empty")
	}
	other := *c
	other.Command, other.commandOrigin = command, byCommandLine()
	other.Workers.Env, other.Hooks = nil, worker.Hooks{}
	if faults := other.placeholdersFit(); len(faults) > 0 {
		return faults
	}
	return nil
}

// nearlyPlaceholder returns the placeholder that a word is, or nearly is: but
// for one letter, or for capitals. It is strict, because other programs have
// words in braces too.
func nearlyPlaceholder(word string) string {
	lower := strings.ToLower(word)
	for _, known := range placeholders() {
		if lower == known || len(lower) >= len(known)-1 && spelling.Distance(lower, known) <= 1 {
			return known
		}
	}
	return map[string]string{"address": "addr", "hostname": "host"}[lower]
}
