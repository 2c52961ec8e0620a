package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cabrank/cabrank/internal/testkit"
)

// toldOf stands between a line of a case and what is told of it; it begins a line with more
// of that.
const toldOf = " #! "

// TestTold reads the configurations of testdata, and holds what is told of each line. A file
// is about one subject; a case in it, from "-- its name --", is one configuration:
//
//	$ QUEUE_LENGTH=7        a variable
//	$ --queue 7             a flag
//	$ -- ruby worker.rb     the command
//	queue.length: many      all other lines are the file cabrank.yml
//
// If the name of the case begins with "each", every line is a configuration by itself; a
// backslash between blanks stands for the end of a line in it.
// Behind the line is each fault of it; if there are none at all its warnings, and each value
// that is not the default. What is of no line of the case is behind the last one, with its
// place. `go test ./internal/config -update` writes what is told now.
func TestTold(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	for _, file := range files {
		text, err := os.ReadFile(file)
		testkit.Must(t, err)
		cases := strings.Split(string(text), "\n-- ")
		for i, part := range cases[1:] {
			name, body, _ := strings.Cut(part, " --\n")
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar")+"/"+name, func(t *testing.T) {
				told := tellCase(strings.HasPrefix(name, "each"), body)
				testkit.Want(t, told == body || *update, "got\n%s\nwant\n%s", told, body)
				cases[i+1] = name + " --\n" + told
			})
		}
		if *update {
			testkit.Must(t, os.WriteFile(file, []byte(strings.Join(cases, "\n-- ")), 0o644))
		}
	}
}

// tellCase is a case with what is told of it now.
func tellCase(each bool, body string) string {
	var lines, told []string
	for line := range strings.SplitSeq(strings.TrimRight(body, "\n"), "\n") {
		if strings.HasPrefix(line, toldOf[1:]) {
			continue
		}
		line, _, _ = strings.Cut(line, toldOf)
		if lines = append(lines, line); each {
			told = append(told, tellLine(line)...)
		}
	}
	if !each {
		told = tell(lines)
	}
	return strings.Join(told, "\n") + strings.Repeat("\n", len(body)-len(strings.TrimRight(body, "\n")))
}

// tellLine tells of a line that is a configuration by itself: with places, if it stands for
// several lines.
func tellLine(line string) []string {
	parts := strings.Split(line, ` \ `)
	if len(parts) == 1 {
		return tell(parts)
	}
	from, _ := readCase(parts)
	for _, text := range toldBy(Load(from)) {
		line += toldOf + strings.TrimPrefix(text, "cabrank.yml:")
	}
	return []string{line}
}

// tell writes what is told of each line behind it.
func tell(lines []string) (told []string) {
	from, lineOf := readCase(lines)
	behind := make([][]string, len(lines))
	for _, text := range toldBy(Load(from)) {
		place, what, _ := strings.Cut(text, ": ")
		i, is := lineOf[place]
		if !is {
			i, what = len(lines)-1, text
		}
		behind[i] = append(behind[i], what)
	}
	for i, line := range lines {
		if len(behind[i]) > 0 {
			line += toldOf + strings.Join(behind[i], "\n"+toldOf[1:])
		}
		told = append(told, line)
	}
	return told
}

// readCase makes sources of lines. lineOf says by places on which line they are.
func readCase(lines []string) (from Sources, lineOf map[string]int) {
	file, files := "", map[string]string{}
	from, lineOf = sources(files), map[string]int{}
	from.Flags = map[string]string{}
	for i, line := range lines {
		given, isSource := strings.CutPrefix(line, "$ ")
		name, value, _ := strings.Cut(given, " ")
		switch {
		case !isSource:
			file += line + "\n"
			lineOf[fmt.Sprintf("cabrank.yml:%d", strings.Count(file, "\n"))] = i
			files["cabrank.yml"] = file
		case name == "--":
			from.Command, lineOf["command line"] = strings.Fields(value), i
		case strings.HasPrefix(name, "--"):
			from.Flags[name[2:]], lineOf["flag "+name] = value, i
		default:
			name, _, _ = strings.Cut(given, "=")
			from.Environ, lineOf["variable "+name] = append(from.Environ, given), i
		}
	}
	return from, lineOf
}

// toldBy is what is told of a configuration, each with its place.
func toldBy(c *Config, err error) (texts []string) {
	if err != nil {
		return Lines(err)
	}
	texts = c.Warnings
	for _, value := range c.Values() {
		if value.Origin != (Origin{}) {
			texts = append(texts, fmt.Sprintf("%s: %s = %s", value.Origin, value.Key, value.Value))
		}
	}
	return texts
}
