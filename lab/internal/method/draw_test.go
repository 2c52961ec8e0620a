package method

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/cabrank/cabrank/internal/testkit"
)

// What is drawn has the distribution that was asked for, and is the same again.
func TestDraws(t *testing.T) {
	const calls = 20_000
	for _, c := range []struct {
		text       string
		mean, p90  float64
		least, top float64
	}{
		{"exponential 10", 10, 23.03, 0, 400},
		{"exponential 10:95 210:5", 20, 34, 0, 5000},
		{"uniform 5 15", 10, 14, 5, 15},
		{"mix 5:90 50:10", 9.5, 5, 5, 50},
		{"mix 7:1", 7, 7, 7, 7},
		{"exponential 0", 0, 0, 0, 0},
	} {
		p, err := parsePlaceholder(c.text)
		testkit.Must(t, err)
		var sum float64
		above := 0
		for i := range uint64(calls) {
			at := spot{seed: 3, call: i}
			v := p.draw(at.draws().Float64())
			sum += v
			if v > c.p90*1.001 {
				above++
			}
			testkit.Need(t, v >= c.least && v <= c.top && v == p.draw(at.draws().Float64()), "%s: %v in call %d", c.text, v, i)
		}
		if mean := sum / calls; math.Abs(mean-c.mean) > 0.03*c.mean {
			t.Errorf("%s: the mean is %v, want %v", c.text, mean, c.mean)
		}
		share := float64(above) / calls
		testkit.Want(t, share <= 0.11, "%s: %v are above %v", c.text, share, c.p90)
		testkit.Want(t, p.name == "{{"+c.text+"}}", "%s is written %s", c.text, p.name)
	}
}

// A draw keeps its decimals in a double and a text.
func TestDrawsIntoFields(t *testing.T) {
	m, err := FromFiles(t.Context(), Files{Names: []string{"testdata/kinds.proto"}}, "kinds.v1.Kinds/Unary")
	testkit.Must(t, err)
	text := `{"a_double": {{uniform 0.25 0.5}}, "an_int32": {{mix 2:1}}, "text": "{{exponential 3}}"}`
	r, err := m.Requests(Data{Name: "--data", Text: []byte(text)})
	testkit.Must(t, err)
	for call := range uint64(50) {
		sent := dynamicpb.NewMessage(m.input)
		testkit.Must(t, proto.Unmarshal(r.Messages(call)[0], sent))
		var got struct {
			ADouble float64 `json:"aDouble"`
			AnInt32 int     `json:"anInt32"`
			Text    string  `json:"text"`
		}
		testkit.Must(t, json.Unmarshal([]byte(protojson.Format(sent)), &got))
		v, err := strconv.ParseFloat(got.Text, 64)
		testkit.Want(t, got.ADouble >= 0.25 && got.ADouble < 0.5 && got.AnInt32 == 2 && err == nil && v >= 0, "call %d: %+v", call, got)
	}
}

func TestDrawFaults(t *testing.T) {
	for text, want := range map[string]string{
		"exponential":     "exponential takes 1 numbers, not 0",
		"exponential 5:0": "exponential takes VALUE:WEIGHT pairs",
		"exponential x":   `exponential: "x" is not a number from 0 to 1000000000`,
		"exponential -1":  `"-1" is not a number`,
		"exponential NaN": `"NaN" is not a number`,
		"uniform 5 5":     "{{uniform 5 5}}: there is no number from 5 up to and without 5",
		"mix":             "mix takes VALUE:WEIGHT pairs",
		"mix 5":           `mix: "5" is not VALUE:WEIGHT, such as 5:90`,
		"mix 5:0":         "with a weight above 0",
		"mix 5:x":         `mix: "x" is not a number`,
	} {
		_, err := parsePlaceholder(text)
		testkit.Refused(t, err, want)
	}
}
