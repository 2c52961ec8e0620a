package strictyaml_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/cabrank/cabrank/internal/strictyaml"
	"github.com/cabrank/cabrank/internal/testkit"
)

// text is what reads itself.
type text string

func (t *text) UnmarshalText(b []byte) error {
	if len(b) > 3 {
		return fmt.Errorf("%q is longer than 3", b)
	}
	*t = text(b)
	return nil
}

// whole reads its value itself.
type whole struct{ Line int }

func (w *whole) UnmarshalStrict(n strictyaml.Node) { w.Line = n.Line }

type workers struct {
	Count int  `key:"count,alone" range:"1..10" word:"auto=0"`
	Slots int  `also:"pool_size" key:"slots" range:"5..50" zero:"none"`
	Fast  bool `key:"fast"`
}

// Check refuses what does not go together.
func (w *workers) Check(n strictyaml.Node) {
	if w.Count > 5 && w.Fast {
		n.Fault("fast", "is for few", "count up to 5")
	}
}

type shared struct {
	Share float64 `key:"share" range:"0%..50%" unit:"%"`
}

type config struct {
	Shared shared `key:",inline"`

	Name    string             `key:"name,required"`
	Mode    string             `key:"mode" oneof:"slow|fast"`
	Wait    time.Duration      `key:"wait" range:"1ms..1h"`
	Pause   time.Duration      `key:"pause"`
	Size    int64              `key:"size" range:"1KiB..64MiB" unit:"B"`
	Rate    float64            `key:"rate" range:"0..10" unit:"/s"`
	Weight  float64            `key:"weight" range:"-1..1"`
	Seed    uint64             `key:"seed"`
	Words   []string           `items:"0..3" key:"words" split:","`
	Numbers []int              `key:"numbers" range:"1..9"`
	Weights map[text]float64   `items:"1..2" key:"weights" range:"0..5"`
	Workers workers            `key:"workers"`
	Other   *workers           `key:"other"`
	Groups  map[string]workers `key:"groups"`
	Whole   whole              `key:"whole"`
	Later   strictyaml.Node    `key:"later"`
	private int
}

const good = `
name: &n a
mode: fast
share: 12.5%
wait: 90s
pause: 10ms
size: 2KiB
rate: 300/m
weight: -0.5
seed: 7
words: a c, b
numbers: [1, 2]
weights: {a: 1, b: 2.5}
workers: 3
other: {count: auto, pool_size: 0, fast: yes}
groups:
  x: {slots: 7}
  y: 4
whole: [1]
later: {slots: 9}
`

func decode(s string) (c config, err error) {
	n := strictyaml.Read("x.yml", []byte(s))
	n.Decode(&c)
	return c, n.Err()
}

func TestDecode(t *testing.T) {
	c, err := decode(good)
	testkit.Must(t, err)
	if !c.Later.Decode(&c.Workers) || c.Workers != (workers{Count: 3, Slots: 9}) || c.Later.Key != "later" || c.Later.Line != 20 {
		t.Errorf("what a part does not give has to stay: %+v", c.Workers)
	}
	c.Later = strictyaml.Node{}
	want := config{
		Shared: shared{0.125}, Name: "a", Mode: "fast", Wait: 90 * time.Second, Pause: 10 * time.Millisecond, Size: 2048, Rate: 5, Weight: -0.5, Seed: 7,
		Words: []string{"a c", "b"}, Numbers: []int{1, 2}, Weights: map[text]float64{"a": 1, "b": 2.5}, Workers: workers{Count: 3, Slots: 9},
		Other: &workers{Fast: true}, Groups: map[string]workers{"x": {Slots: 7}, "y": {Count: 4}}, Whole: whole{19},
	}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestFaults(t *testing.T) {
	for old, others := range map[string]map[string]string{
		"mode: fast": {
			"moed: fast":             "x.yml:3: moed: unknown key; did you mean mode?",
			"zzz: 1":                 "x.yml:3: zzz: unknown key; allowed: groups, later, mode, name,",
			"mode: fsat":             `x.yml:3: mode: "fsat" is unknown; did you mean fast? allowed: slow, fast`,
			"mode: x":                `x.yml:3: mode: "x" is unknown; allowed: slow, fast`,
			"mode: [x]":              "x.yml:3: mode: is a list or has keys; allowed: slow, fast",
			"mode:":                  "x.yml:3: mode: has no value; allowed: slow, fast",
			"<<: {a: 1}":             "x.yml:3: <<: merge keys are not taken; allowed: an alias in place of a value",
			"name: b":                "x.yml:3: name: is set twice, first on line 2",
			"? [a]\n: 1":             "x.yml:3: unknown key; allowed: groups,",
			"mode: &m\n  - *m":       "x.yml:3: mode: is a list or has keys",
			"mode: *x":               "x.yml: is not valid YAML, here or below: an alias to nothing that comes before",
			"mode: fast\n\tx: 1":     "x.yml:4: is not valid YAML, here or below: a line begins with a tab",
			"---":                    "x.yml:3: a second YAML document begins here; allowed: one document",
			strings.Repeat("x", 100): "x.yml:",
		},
		"name: &n a":    {"# a": "x.yml: name: is missing; allowed: text"},
		"share: 12.5%":  {"share: 12": `x.yml:4: share: "12" is not a share such as 5%; allowed: 0% to 50%`, "share: 51%": `"51%" is out of range; allowed: 0% to 50%`},
		"wait: 90s":     {"wait: 90": `x.yml:5: wait: "90" has no unit, as in 90s; allowed: 1ms to 1h`, "wait: 2h": `"2h" is out of range`, "wait: soon": `"soon" is not a time such as`},
		"pause: 10ms":   {"pause: -1s": `x.yml:6: pause: "-1s" is out of range; allowed: a number of 0 or more`},
		"size: 2KiB":    {"size: 1": `x.yml:7: size: "1" is out of range; allowed: 1KiB to 64MiB`, "size: 2kg": `"2kg" is not a size in bytes, KiB, MiB or GiB`, "size: 2048.5": "is not a whole number", "size: 2%": "is not a size in bytes, KiB, MiB or GiB"},
		"rate: 300/m":   {"rate: 11": `x.yml:8: rate: "11" is out of range; allowed: 0 to 10`, "rate: 1/d": `"1/d" is not a number`},
		"seed: 7":       {"seed: 1e300": `"1e300" is out of range`, "seed: NaN": `"NaN" is not a number`, "seed: 0.5": `"0.5" is not a whole number; allowed: a number of 0 or more`},
		"words: a c, b": {"words: [a, b, c, d]": "x.yml:11: words: has 4 entries; allowed: 0 to 3", "words: [{a: b}]": "x.yml:11: words[1]: is a list or has keys; allowed: text"},
		"[1, 2]":        {"[1, 0]": `x.yml:12: numbers[2]: "0" is out of range; allowed: 1 to 9`, "": "x.yml:12: numbers: has no value; allowed: 1 to 9"},
		"{a: 1, b: 2.5}": {
			"{abcd: 1}": `x.yml:13: weights[abcd]: "abcd" is longer than 3`, "{a: 6}": `x.yml:13: weights[a]: "6" is out of range; allowed: 0 to 5`,
			"{}": "x.yml:13: weights: has 0 entries; allowed: 1 to 2", "1": "x.yml:13: weights: is not of the form key: value", "{a: 1, a: 2}": "weights[a]: is set twice, first on line 13",
		},
		"workers: 3":    {"workers: x": `x.yml:14: workers: "x" is not a number; allowed: 1 to 10, or auto`, "workers: 3s": `"3s" is not a number`, "workers: [1]": "x.yml:14: workers: is not of the form key: value; allowed: 1 to 10, or auto; or keys: count, fast, slots"},
		"fast: yes":     {"fast: maybe": `other.fast: "maybe" is neither true nor false; allowed: true or false`, "slots: 6": "other.slots: is set twice, first on line 15", "fast: on, count: 6": "other.count: is set twice"},
		"  y: 4":        {"  y: {count: 6, fast: true}": "x.yml:18: groups[y].fast: is for few; allowed: count up to 5"},
		"{slots: 7}":    {"{slots: 3}": `x.yml:17: groups[x].slots: "3" is out of range; allowed: 5 to 50, or 0: none`},
		"whole: [1]":    {"whole: [1": "is not valid YAML"},
		"later: {slots": {"later: {\"a\nb\": 1, slots": ""},
	} {
		for other, want := range others {
			_, err := decode(strings.Replace(good, old, other, 1))
			if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q:\ngot  %v\nwant %s", other, err, want)
			}
		}
	}
}

// All faults of a file are told, in the order of its lines, but not more than fit on a
// screen.
func TestTogether(t *testing.T) {
	_, err := decode("sizes: 1\nwords: {a: 1}\nnumbers: [0, x]\nname: [a]\n")
	want := `x.yml:1: sizes: unknown key; did you mean size?
x.yml:2: words: is a list or has keys; allowed: text
x.yml:3: numbers[1]: "0" is out of range; allowed: 1 to 9
x.yml:3: numbers[2]: "x" is not a number; allowed: 1 to 9
x.yml:4: name: is a list or has keys; allowed: text`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	var faults strictyaml.Faults
	if _, err = decode("name: a\nnumbers: [" + strings.Repeat("0, ", 50) + "0]"); !errors.As(err, &faults) || len(faults) != 51 || faults[0].Key != "numbers[1]" {
		t.Errorf("%d faults", len(faults))
	}
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 20 || lines[19] != "x.yml: 32 more faults" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

// A small file that aliases make large is refused before it has taken long.
func TestBounds(t *testing.T) {
	if _, err := decode(strings.Repeat("# comment\n", 110_000)); err == nil || err.Error() != "x.yml: has more than 1048576 bytes; allowed: at most 1048576" {
		t.Error(err)
	}
	var many struct {
		One [][]string `key:"one"`
	}
	n := strictyaml.Read("x.yml", []byte("one: [&a ["+strings.Repeat("a, ", 5000)+"a]"+strings.Repeat(", *a", 5000)+"]"))
	if n.Decode(&many); n.Err() == nil || !strings.Contains(n.Err().Error(), "is too much, with what aliases repeat; allowed: at most 200000 values") {
		t.Errorf("%.200v", n.Err())
	}
}

func TestReplace(t *testing.T) {
	n := strictyaml.Read("x.yml", []byte("name: &a n\nmode: {name: *a}\nwords: [n, m]"))
	n.Replace(func(s string) string { return strings.ReplaceAll(s, "n", "nn") })
	var c config
	if n.Get("name").Decode(&c.Name); c.Name != "nn" {
		t.Errorf("got %q", c.Name)
	}
	if n.Get("words").Decode(&c.Words, `split:"+"`); strings.Join(c.Words, " ") != "nn m" || n.Get("none").Given() || !n.Get("name").Alone() {
		t.Errorf("got %q", c.Words)
	}
	if n = strictyaml.Read("x.yml", []byte("# nothing")); n.Given() || n.Err() != nil || !n.Decode(&c) {
		t.Error("an empty file has to be no value, and no fault")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(good)
	f.Add("a: &a [*a]\n<<: *a")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := decode(text)
		if err != nil {
			if n := strings.Count(err.Error(), "\n"); n > 19 || !strings.HasPrefix(err.Error(), "x.yml:") {
				t.Errorf("%d lines: %q", n+1, err)
			}
			return
		}
		if c.private != 0 || c.Wait < 0 || c.Shared.Share > 0.5 || len(c.Words) > 3 || c.Workers.Count > 10 {
			t.Errorf("out of bounds: %+v", c)
		}
	})
}
