package report

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/cabrank/cabrank/internal/testkit"
)

// sentences are those of a document in their order.
func sentences(d Document) []string { return slices.Concat(d.Answer, d.Words) }

func document() Document {
	rises := line{Key: Key{Label: "it rises"}, points: []point{{x: 0, y: 0}, {x: 10, y: 90}}}
	chart := Picture{Title: "a < b", Note: "n"}.lines(linear("x", 10, plainNumber), linear("y", 100, plainNumber), []line{rises})
	columns := Picture{Title: "done", Events: []Event{{From: 2, To: 4, Label: "<stop>"}, {From: 8, To: 9, Label: "kill"}}}.
		strips(linear("x", 10, plainNumber), []Key{{Label: "yes"}, {Label: "no"}}, 1, []strip{{"a & b", 1, [][]float64{{1, 0}}}})
	table := Table{Title: "How <often>", Columns: columnsOf("worker", "#calls")}
	table.Add("worker-1", "12")
	table.Add(`<script>alert("1")</script>`, "3")
	return Document{
		Title: "Calls & <answers>", Answer: []string{"p99 is 3 ms.", "2 failed."}, Picture: chart, Words: []string{"More."},
		Sections: []Section{
			{Heading: "Latency", Text: []string{"From the moment a call was due."}, Pictures: []*Picture{columns}},
			{Heading: "Workers", Tables: []Table{table}, Files: []File{{"It", "name: <it>"}}},
		},
	}
}

// A page is whole whatever its words are: what is opened is closed, nothing that
// came as text is an element, and nothing is fetched or run.
func TestHTML(t *testing.T) {
	text := document().HTML()
	testkit.Want(t, bytes.Equal(text, document().HTML()), "the second page is another one")
	seen := map[string]int{}
	var open []string
	for z := html.NewTokenizer(bytes.NewReader(text)); ; {
		switch z.Next() {
		case html.ErrorToken:
			testkit.Need(t, errors.Is(z.Err(), io.EOF) && len(open) == 0, "%v, not closed: %v", z.Err(), open)
			for name, want := range map[string]int{"h1": 1, "h2": 2, "details": 2, "svg": 2, "figure": 2, "table": 1, "tr": 3, "script": 0} {
				testkit.Want(t, seen[name] == want, "%d elements %s, want %d", seen[name], name, want)
			}
			return
		case html.TextToken, html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken: // a path closes itself
		case html.StartTagToken:
			token := z.Token()
			seen[token.Data]++
			for _, a := range token.Attr {
				if (a.Key == "src" || a.Key == "href") && !strings.HasPrefix(a.Val, "data:") || strings.Contains(a.Val, "Zgotmpl") {
					t.Errorf("%s of %s is %s", a.Key, token.Data, a.Val)
				}
			}
			switch token.Data {
			case "meta", "link", "br":
			default:
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			name := z.Token().Data
			testkit.Need(t, len(open) != 0 && open[len(open)-1] == name, "</%s> closes %v", name, open)
			open = open[:len(open)-1]
		}
	}
}

// The answer and its picture come before all else, which is folded; pictures are told in
// words to those who do not see them.
func TestAnswerFirst(t *testing.T) {
	text := string(document().HTML())
	last := 0
	for _, want := range []string{"p99 is 3\u00a0ms.", "2 failed.", "<strong>a &lt; b</strong>", `aria-label="a &lt; b. Lines of y over x. it rises: 0 at 0`, "<p>More.</p>", "<details><summary><h2>Latency", "From 2 to 4: &lt;stop&gt;.", "<details><summary><h2>Workers"} {
		at := strings.Index(text, want)
		testkit.Need(t, at >= last, "%q is at %d, behind %d, in\n%s", want, at, last, text)
		last = at
	}
}

func TestPrint(t *testing.T) {
	table := Table{Title: "By worker", Columns: columnsOf("worker", "#calls", "")}
	table.Add("worker-1", "9", "")
	table.Add("é", "12,000", "too few")
	var b strings.Builder
	d := Document{Answer: []string{"One."}, Words: []string{"Two."}}
	d.add(Section{Tables: []Table{table, {Columns: table.Columns, Rows: table.Rows, PageOnly: true}, {Title: "empty"}}})
	testkit.Must(t, d.Print(&b))
	want := "One.\nTwo.\n\nBy worker\n" +
		"worker     calls\n" +
		"worker-1       9\n" +
		"é         12,000  too few\n"
	testkit.Want(t, b.String() == want, "got\n%s\nwant\n%s", b.String(), want)
}
