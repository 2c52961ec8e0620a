package report

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/cabrank/cabrank/lab/internal/plot"
)

func page() Page {
	chart := plot.Chart{
		Title: "a < b", Note: "n",
		X: upTo("x", 10), Y: upTo("y", 100),
		Lines: []plot.Line{{Label: "it rises", Points: []plot.Point{{X: 0, Y: 0}, {X: 10, Y: 90}}}},
	}
	table := Table{Title: "How <often>", Columns: []Column{{Name: "worker"}, {Name: "calls", Number: true}}}
	table.Add("worker-1", "12")
	table.Add(`<script>alert("1")</script>`, "3")
	return Page{
		Title: "Calls & <answers>", Summary: []string{"p99 is 3 ms.", "2 failed."},
		Parts: []Part{
			{Heading: "Latency", Text: []string{"From the moment a call was due."}, Charts: []plot.Chart{chart}},
			{Heading: "Workers", Tables: []Table{table}},
		},
	}
}

// A page is whole whatever its words are: what is opened is closed, nothing that
// came as text is an element, and nothing is fetched or run.
func TestHTML(t *testing.T) {
	text := page().HTML()
	if !bytes.Equal(text, page().HTML()) {
		t.Error("the second page is another one")
	}
	seen := map[string]int{}
	var open []string
	for z := html.NewTokenizer(bytes.NewReader(text)); ; {
		switch z.Next() {
		case html.ErrorToken:
			if !errors.Is(z.Err(), io.EOF) || len(open) > 0 {
				t.Fatalf("%v, not closed: %v", z.Err(), open)
			}
			for name, want := range map[string]int{"h1": 1, "h2": 2, "svg": 2, "figure": 1, "table": 1, "tr": 3, "script": 0} {
				if seen[name] != want {
					t.Errorf("%d elements %s, want %d", seen[name], name, want)
				}
			}
			return
		case html.TextToken, html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken: // a path closes itself
		case html.StartTagToken:
			token := z.Token()
			seen[token.Data]++
			for _, a := range token.Attr {
				if (a.Key == "src" || a.Key == "href") && !strings.HasPrefix(a.Val, "data:") {
					t.Errorf("%s is fetched from %s", token.Data, a.Val)
				}
			}
			switch token.Data {
			case "meta", "link", "br":
			default:
				open = append(open, token.Data)
			}
		case html.EndTagToken:
			name := z.Token().Data
			if len(open) == 0 || open[len(open)-1] != name {
				t.Fatalf("</%s> closes %v", name, open)
			}
			open = open[:len(open)-1]
		}
	}
}

// A picture is told in words to those who do not see it.
func TestPicturesInWords(t *testing.T) {
	if text := string(page().HTML()); !strings.Contains(text, "it rises: 0 at 0") || !strings.Contains(text, "a &lt; b") {
		t.Errorf("no words for the picture in\n%s", text)
	}
}

func TestTable(t *testing.T) {
	table := Table{Title: "By worker", Columns: []Column{{Name: "worker"}, {Name: "calls", Number: true}, {Name: ""}}}
	table.Add("worker-1", "9", "")
	table.Add("é", "12,000", "too few")
	var b strings.Builder
	if _, err := table.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	want := "By worker\n" +
		"worker     calls\n" +
		"worker-1       9\n" +
		"é         12,000  too few\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
