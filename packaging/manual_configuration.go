package main

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// links match a link with its text; its target is a file that no page has beside it.
	links = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`)
	// comments match those of HTML.
	comments = regexp.MustCompile(`(?s)<!--.*?-->\n*`)
	// tables match a whole table: the line of its headings, the rule, the rows.
	tables = regexp.MustCompile(`(?m)^(\|.*\|)\n\|[-|]+\|\n((?:\|.*\|\n)+)`)
)

// configurationPage is docs/configuration.md as the page cabrank.yml(5), in Markdown: with
// a list in place of each table, which no terminal is wide enough for.
func configurationPage(doc string) string {
	_, doc, _ = strings.Cut(doc, "\n") // its title
	doc = comments.ReplaceAllString(doc, "")
	doc = links.ReplaceAllString(doc, "$1")
	doc = strings.ReplaceAll(doc, "\n## ", "\n# ")
	doc = tables.ReplaceAllStringFunc(doc, func(table string) string {
		m := tables.FindStringSubmatch(table)
		names := cells(m[1])
		var out strings.Builder
		for row := range strings.Lines(m[2]) {
			out.WriteString(definition(names, cells(row)))
		}
		return out.String()
	})
	return "# NAME\ncabrank.yml - configuration of cabrank\n\n# DESCRIPTION\n" + strings.TrimSpace(doc) +
		"\n\n# SEE ALSO\n**cabrank(1)**, **cabrank-run(1)**, **cabrank-check(1)**, **cabrank-reload(1)**, " + homepage + "\n"
}

// cells splits a row of a table.
func cells(row string) []string {
	all := strings.Split(strings.Trim(strings.TrimSpace(row), "|"), "|")
	for i, cell := range all {
		all[i] = strings.TrimSpace(cell)
	}
	return all
}

// definition is a row: what its first column names, then its meaning, which is the last
// column, then the others by their names.
func definition(names, row []string) string {
	last := len(row) - 1
	var rest []string
	for i := 1; i < last; i++ {
		if row[i] != "" {
			rest = append(rest, names[i]+": "+row[i])
		}
	}
	return fmt.Sprintf("%s\n: %s. %s\n\n", row[0], row[last], strings.Join(rest, "; "))
}
