package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cpuguy83/go-md2man/v2/md2man"
)

// readManuals fills r.Manuals: a page for each command, from what --help says of it, and
// cabrank.yml(5) from docs/configuration.md.
func (r *release) readManuals(ask asker) error {
	if err := r.addPages(ask, []string{r.Name}, r.Short); err != nil || r.Name != service().Name {
		return err
	}
	doc, err := os.ReadFile(filepath.Join(r.Root, "docs", "configuration.md"))
	if err != nil {
		return err
	}
	r.addManual("cabrank.yml", 5, configurationPage(string(doc)))
	slices.SortFunc(r.Manuals, func(a, b file) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// addPages adds the page of a command and those of the commands below it.
func (r *release) addPages(ask asker, command []string, short string) error {
	text, err := ask(append([]string{"help"}, command[1:]...)...) // not --help, which another program would get of "lab"
	if err != nil {
		return err
	}
	h, err := parseHelp(string(text))
	if err != nil {
		return fmt.Errorf("%s --help: %w", strings.Join(command, " "), err)
	}
	r.addManual(strings.Join(command, "-"), 1, h.page(command, short))
	for _, below := range h.commands {
		if below.term == "help" || r.Name+"-"+below.term == lab().Name {
			continue // it prints these texts, or is another program, with a page of its own
		}
		if err := r.addPages(ask, append(slices.Clip(command), below.term), below.text); err != nil {
			return err
		}
	}
	return nil
}

// addManual adds a page that is written in Markdown.
func (r *release) addManual(name string, section int, markdown string) {
	title := fmt.Sprintf("%% %q \"%d\" %q %q \"Cabrank\"\n", strings.ToUpper(name), section, r.Date.Format("2006-01-02"), r.Name+" "+r.Version)
	r.Manuals = append(r.Manuals, file{
		Name: fmt.Sprintf("man/man%d/%s.%d", section, name, section), Mode: 0o644,
		Content: withMinus(md2man.Render([]byte(title + markdown))),
	})
}

// withMinus has every dash in the text of a page be the one that people type, so that
// flags can be searched and copied.
func withMinus(page []byte) []byte {
	lines := bytes.SplitAfter(page, []byte("\n"))
	for i, line := range lines {
		if !bytes.HasPrefix(line, []byte(".")) {
			line = bytes.ReplaceAll(line, []byte(`\-`), []byte("-"))
			lines[i] = bytes.ReplaceAll(line, []byte("-"), []byte(`\-`))
		}
	}
	return bytes.Join(lines, nil)
}

// entry is a flag or a command, with what is said of it.
type entry struct{ term, text string }

// help is what --help prints, in parts.
type help struct {
	paragraphs []string
	usage      []string // lines
	examples   string
	commands   []entry
	flags      []entry
}

// parseHelp reads the help of a command: a description, then parts with a name on a line
// of its own, as cmd/cabrank/help.go writes them.
//
// Errors: there is no usage, or a flag or a command has a form that is not known.
func parseHelp(text string) (h help, err error) {
	about, rest, found := strings.Cut(text, "\nUsage:\n")
	if !found {
		return h, fmt.Errorf("no line %q", "Usage:")
	}
	h.paragraphs = strings.Split(strings.TrimSpace(about), "\n\n")
	usage, rest, _ := strings.Cut(rest, "\n\n")
	h.usage = strings.Split(usage, "\n")
	for rest != "" {
		var heading, part string
		heading, rest, _ = strings.Cut(rest, "\n")
		part, rest = cutPart(rest)
		switch heading {
		case "Examples:":
			h.examples = strings.TrimRight(part, "\n")
		case "Available Commands:":
			h.commands, err = entries(part, " ")
		case "Flags:":
			h.flags, err = entries(part, "   ")
		}
		if err != nil {
			return h, err
		}
	}
	return h, nil
}

// parts begin with a heading or with the last line of the help of all.
var parts = regexp.MustCompile(`(?m)\n\n(Available Commands:|Flags:|Additional help topics:|Use ")`)

// cutPart returns the text up to the next part, and that from its heading on.
func cutPart(text string) (part, rest string) {
	if at := parts.FindStringIndex(text); at != nil {
		return text[:at[0]], text[at[0]+2:]
	}
	return text, ""
}

// entries reads lines of two columns with gap between them.
func entries(part, gap string) (all []entry, err error) {
	for line := range strings.SplitSeq(strings.Trim(part, "\n"), "\n") {
		term, text, found := strings.Cut(strings.TrimSpace(line), gap)
		if !found {
			return nil, fmt.Errorf("no two columns: %q", line)
		}
		all = append(all, entry{term, strings.TrimSpace(text)})
	}
	return all, nil
}

// exitStatus begins the paragraph that has a heading of its own in a page.
const exitStatus = "Exit status: "

// page is the manual page of a command, in Markdown.
func (h help) page(command []string, short string) string {
	var out strings.Builder
	name := strings.Join(command, "-")
	fmt.Fprintf(&out, "# NAME\n%s - %s\n\n# SYNOPSIS\n", name, asText(lowered(short)))
	for _, line := range h.usage {
		path := strings.Join(command, " ")
		fmt.Fprintf(&out, "**%s**%s\n\n", path, asText(strings.TrimPrefix(strings.TrimSpace(line), path)))
	}
	out.WriteString("# DESCRIPTION\n")
	status := ""
	for _, p := range h.paragraphs {
		if after, is := strings.CutPrefix(p, exitStatus); is {
			status = after
			continue
		}
		out.WriteString(paragraph(p))
	}
	if len(h.commands) > 0 {
		out.WriteString("# COMMANDS\n")
		for _, c := range h.commands {
			fmt.Fprintf(&out, "**%s**\n: %s\n\n", asText(c.term), asText(c.text))
		}
	}
	out.WriteString("# OPTIONS\n")
	for _, f := range h.flags {
		fmt.Fprintf(&out, "%s\n: %s\n\n", flagTerm(f.term), asText(f.text))
	}
	if h.examples != "" {
		fmt.Fprintf(&out, "# EXAMPLES\n```\n%s\n```\n\n", h.examples)
	}
	if status != "" {
		fmt.Fprintf(&out, "# EXIT STATUS\n%s", paragraph(status))
	}
	return out.String() + "# SEE ALSO\n" + strings.Join(h.related(command), ", ") + "\n"
}

// related names the pages around that of a command.
func (h help) related(command []string) (pages []string) {
	if len(command) > 1 {
		pages = append(pages, strings.Join(command[:len(command)-1], "-")+"(1)")
	}
	for _, below := range h.commands {
		if below.term != "help" {
			pages = append(pages, strings.Join(command, "-")+"-"+below.term+"(1)")
		}
	}
	if command[0] == service().Name {
		pages = append(pages, "cabrank.yml(5)")
	}
	for i, page := range pages {
		pages[i] = "**" + page + "**"
	}
	return append(pages, homepage)
}

// lowered is a sentence as the second half of a line.
func lowered(s string) string {
	if len(s) > 1 && strings.ToUpper(s[:2]) != s[:2] {
		s = strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// flagTerm sets the flags of a column in bold and their value in italics: "-o, --out FILE".
func flagTerm(column string) string {
	words := strings.Fields(column)
	for i, word := range words {
		if bare := strings.TrimSuffix(word, ","); strings.HasPrefix(word, "-") {
			words[i] = "**" + asText(bare) + "**" + strings.TrimPrefix(word, bare)
		} else {
			words[i] = "*" + asText(word) + "*"
		}
	}
	return strings.Join(words, " ")
}

// paragraph is one of a description. Where all lines are indented they are kept as they
// are.
func paragraph(text string) string {
	if strings.HasPrefix(text, "  ") {
		return "```\n" + text + "\n```\n\n"
	}
	return asText(text) + "\n\n"
}

// marks are what Markdown would take for more than a letter.
var marks = regexp.MustCompile("[\\\\`*_\\[\\]<>#&|~+!]")

// asText is text in Markdown that means itself.
func asText(text string) string { return marks.ReplaceAllString(text, `\$0`) }
