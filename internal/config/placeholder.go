package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cabrank/cabrank/internal/spelling"
)

// Placeholders returns what {addr} and the like may be called, without braces.
//
// They stand for the worker's address ("127.0.0.1:9000" or "unix:/path"), the
// parts of it, which only tcp has, the number of its place from 0, its name
// ("worker-1"), the calls that it gets at a time, and where its metrics page is asked for.
// They are replaced in the command of the workers, in the values of Workers.Env and in
// Hooks.
func Placeholders() []string {
	return []string{"addr", "host", "port", "index", "worker", "slots", "threads", "metrics_port"}
}

// filled is one text in which placeholders are replaced. It may hold secrets, so that
// a fault says where the text is and not what it is.
type filled struct {
	origin Origin
	key    string
	word   int // of a command, from 1; 0: it is not one of several
	text   string
}

// filledTexts returns all texts with placeholders, in the order of the table.
func (c *Config) filledTexts() (all []filled) {
	add := func(origin Origin, key string, words []string) {
		for i, word := range words {
			all = append(all, filled{origin, key, i + 1, word})
		}
	}
	add(c.commandOrigin, "workers.command", c.Command)
	for _, name := range slices.Sorted(maps.Keys(c.Workers.Env)) {
		path := entryPath("workers.env", name)
		all = append(all, filled{c.origins[path], path, 0, c.Workers.Env[name]})
	}
	for i, words := range [][]string{c.Hooks.BeforeStart, c.Hooks.AfterReady, c.Hooks.BeforeStop} {
		key := []string{"hooks.before_start", "hooks.after_ready", "hooks.before_stop"}[i]
		add(c.origins[key], key, words)
	}
	return all
}

// placeholdersFit refuses what a unix socket does not have (R19), and what is
// nearly a placeholder: workers would be told to listen on {prot}.
func (c *Config) placeholdersFit() (faults Faults) {
	for _, f := range c.filledTexts() {
		for _, word := range forms["placeholder"].FindAllString(f.text, -1) {
			if found := c.placeholderFaults(f, word); found != nil {
				faults = append(faults, found...)
				break // one line per text
			}
		}
	}
	return faults
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
	other.Command, other.commandOrigin = command, Origin{Command: true}
	other.Workers.Env, other.Hooks = nil, Hooks{}
	if faults := other.placeholdersFit(); len(faults) > 0 {
		return faults
	}
	return nil
}

func (c *Config) placeholderFaults(f filled, word string) Faults {
	known := nearlyPlaceholder(strings.Trim(word, "{} \t"))
	switch {
	case strings.HasPrefix(word, "$"):
	case known != "" && word != "{"+known+"}":
		what := fmt.Sprintf("%s%s is no placeholder; did you mean {%s}?", word, f.place(" in "), known)
		return Faults{{f.origin, f.key, what, "{" + strings.Join(Placeholders(), "}, {") + "}"}}
	case c.Workers.Transport == "unix" && (word == "{port}" || word == "{host}"):
		what := fmt.Sprintf("a unix socket has no %s, which %s%s asks for", word, f.key, f.place(", "))
		return Faults{c.faultAt("workers.transport", what, "{addr} in its place, or transport tcp")}
	}
	return nil
}

// place says behind a word of the fault which of several texts it is, if there are.
func (f filled) place(behind string) string {
	if f.word == 0 {
		return ""
	}
	return fmt.Sprintf("%sword %d", behind, f.word)
}

// nearlyPlaceholder returns the placeholder that a word is, or nearly is: but
// for one letter, or for capitals. It is strict, because other programs have
// words in braces too.
func nearlyPlaceholder(word string) string {
	lower := strings.ToLower(word)
	for _, known := range Placeholders() {
		if lower == known || len(lower) >= len(known)-1 && spelling.Distance(lower, known) <= 1 {
			return known
		}
	}
	return map[string]string{"address": "addr", "hostname": "host"}[lower]
}
