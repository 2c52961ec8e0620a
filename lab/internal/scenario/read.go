package scenario

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/cabrank/cabrank/internal/spelling"
)

// reader keeps the first thing that is wrong with a file.
type reader struct {
	name  string
	given values
	err   error
}

// fault notes what is wrong on a line; line 0 is the file as a whole.
func (r *reader) fault(line int, key, format string, a ...any) {
	if r.err != nil {
		return
	}
	place := r.name
	if line > 0 {
		place += ":" + strconv.Itoa(line)
	}
	if key != "" {
		place += ": " + key
	}
	r.err = fmt.Errorf("%s: %s", place, fmt.Sprintf(format, a...))
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntax notes what the YAML parser has found, which gives the line only as text.
func (r *reader) syntax(err error) {
	what, line := err.Error(), 0
	if match := yamlLine.FindStringSubmatch(what); match != nil {
		what = what[len(match[0]):]
		line, _ = strconv.Atoi(match[1]) // no number: 0, the file as a whole
	}
	r.fault(line, "", "this is not valid YAML, here or above: %s", strings.Join(strings.Fields(what), " "))
}

// table is one level of keys. Each key is asked for once; close names the first that
// nobody has asked for.
type table struct {
	*reader

	path  string
	line  int
	known []string
	keys  []string // as they stand in the file
	lines map[string]int
	value map[string]*yaml.Node
}

// table reads one level of keys; one without keys if the node is none.
func (r *reader) table(node *yaml.Node, path string) *table {
	t := &table{reader: r, path: path, lines: map[string]int{}, value: map[string]*yaml.Node{}}
	node = resolve(node)
	if node == nil || isNull(node) {
		return t
	}
	t.line = node.Line
	if node.Kind != yaml.MappingNode {
		r.fault(node.Line, path, "want lines of the form key: value")
		return t
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if first, twice := t.lines[key.Value]; twice {
			r.fault(key.Line, t.at(key.Value), "is set twice, first on line %d", first)
			continue
		}
		t.keys = append(t.keys, key.Value)
		t.lines[key.Value] = key.Line
		t.value[key.Value] = resolve(node.Content[i+1])
	}
	return t
}

func resolve(node *yaml.Node) *yaml.Node {
	if node != nil && node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

func (t *table) at(key string) string {
	if t.path == "" {
		return key
	}
	return t.path + "." + key
}

// wrong notes what is wrong with the value of a key.
func (t *table) wrong(key, format string, a ...any) {
	t.fault(t.lines[key], t.at(key), format, a...)
}

// take returns the value of a key, nil if there is none.
func (t *table) take(key string) *yaml.Node {
	t.known = append(t.known, key)
	node := t.value[key]
	if node == nil || isNull(node) {
		return nil
	}
	return node
}

// close notes the first key that is none.
func (t *table) close() {
	for _, key := range t.keys {
		if slices.Contains(t.known, key) {
			continue
		}
		if meant := spelling.Nearest(key, t.known); meant != "" {
			t.wrong(key, "unknown key; did you mean %s?", meant)
			return
		}
		sorted := slices.Sorted(slices.Values(t.known))
		t.wrong(key, "unknown key; there are: %s", strings.Join(sorted, ", "))
		return
	}
}

// scalar returns the text of a value that is not a list.
func (t *table) scalar(key string) (text string, ok bool) {
	node := t.take(key)
	if node == nil {
		return "", false
	}
	if node.Kind != yaml.ScalarNode {
		t.wrong(key, "want one value")
		return "", false
	}
	return t.given.fill(node.Value), true
}

func (t *table) text(key string, into *string) {
	if text, ok := t.scalar(key); ok {
		*into = strings.TrimSpace(text)
	}
}

// word takes one of some words.
func (t *table) word(key string, into *string, words []string) {
	text, ok := t.scalar(key)
	if !ok {
		return
	}
	if !slices.Contains(words, text) {
		t.wrong(key, "%.40q: want %s", text, either(words))
		return
	}
	*into = text
}

// either lists words: "a, b or c".
func either(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func (t *table) whole(key string, into *int, least, most int) {
	text, ok := t.scalar(key)
	if !ok {
		return
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		t.wrong(key, "%.40q: want a whole number from %d to %d", text, least, most)
		return
	}
	*into = n
}

func (t *table) number(key string, into *float64, least, most float64) {
	text, ok := t.scalar(key)
	if !ok {
		return
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || n < least || n > most {
		t.wrong(key, "%.40q: want a number from %v to %v", text, least, most)
		return
	}
	*into = n
}

// share takes a share in percent, below 100 %.
func (t *table) share(key string, into *float64) {
	text, ok := t.scalar(key)
	if !ok {
		return
	}
	digits, signed := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if err != nil || !signed || math.IsNaN(n) || n < 0 || n >= 100 {
		t.wrong(key, "%.40q: want a share such as 5%%, below 100%%", text)
		return
	}
	*into = n / 100
}

// longest is how long anything may take.
const longest = 24 * time.Hour

func (t *table) duration(key string, into *time.Duration) {
	text, ok := t.scalar(key)
	if !ok {
		return
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > longest {
		t.wrong(key, "%.40q: want a time such as 300ms, 10s or 2m, up to %v", text, longest)
		return
	}
	*into = d
}

func (t *table) flag(key string, into *bool) {
	text, ok := t.scalar(key)
	if !ok {
		return
	}
	switch text {
	case "true":
		*into = true
	case "false":
		*into = false
	default:
		t.wrong(key, "%.40q: want true or false", text)
	}
}

// list returns the items of a value: one value is a list of one.
func (t *table) list(key string) []*yaml.Node {
	node := t.take(key)
	switch {
	case node == nil:
		return nil
	case node.Kind == yaml.SequenceNode:
		return node.Content
	default:
		return []*yaml.Node{node}
	}
}

// texts takes a list of texts, or one.
func (t *table) texts(key string, into *[]string) {
	var all []string
	for _, item := range t.list(key) {
		item = resolve(item)
		if item.Kind != yaml.ScalarNode || isNull(item) {
			t.fault(item.Line, t.at(key), "want a list of texts")
			return
		}
		all = append(all, item.Value)
	}
	if all != nil {
		*into = all
	}
}

// command takes a list of words, or a line that is split at spaces.
func (t *table) command(key string, into *[]string) {
	node := t.value[key]
	if node != nil && node.Kind == yaml.ScalarNode {
		t.take(key)
		*into = strings.Fields(node.Value)
		return
	}
	t.texts(key, into)
}

// environment takes names and values, as NAME=value, sorted.
func (t *table) environment(key string, into *[]string) {
	node := t.take(key)
	if node == nil {
		return
	}
	var all []string
	inner := t.table(node, t.at(key))
	for _, name := range inner.keys {
		var value string
		inner.text(name, &value)
		all = append(all, name+"="+value)
	}
	*into = slices.Sorted(slices.Values(all))
}
